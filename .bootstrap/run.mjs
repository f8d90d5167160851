// Runs a program of this repository with the Node that package-lock.json pins, whichever Node and
// npm started it, and installs the dependencies first when something is missing:
//
//   node .bootstrap/run.mjs apps/stack/src/start.ts [argument...]
//   node .bootstrap/run.mjs --bin vitest run
//
// Plain JavaScript for Node 20, since nothing is installed yet when it starts.
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endLike, run } from './child.mjs'
import { install } from './install.mjs'
import { pinnedNode, whatIsMissing } from './packages.mjs'
import { codeOf, Problem, readJson, root } from './repository.mjs'

const OLDEST_STAND_IN = 24

/**
 * Whether the Node that runs this may stand in for the pinned one.
 * @param {string} version such as 24.1.0
 */
export function canStandIn(version) {
  return Number.parseInt(version, 10) >= OLDEST_STAND_IN
}

/**
 * What to run: a file of this repository, or a program of node_modules/.bin.
 * @param {string[]} args
 * @returns {{ bin: boolean, name: string, rest: string[] } | undefined}
 */
export function parseArguments(args) {
  const bin = args[0] === '--bin'
  const [name, ...rest] = bin ? args.slice(1) : args
  return name === undefined ? undefined : { bin, name, rest }
}

/** @param {{ bin: boolean, name: string, rest: string[] }} program */
function fileOf({ bin, name }) {
  const path = bin ? join(root, 'node_modules', '.bin', name) : resolve(root, name)
  try {
    return realpathSync(path)
  } catch {
    throw new Problem(`There is no ${path}`)
  }
}

/** @param {string} node */
function environmentFor(node) {
  const path = [dirname(node), join(root, 'node_modules', '.bin'), process.env.PATH]
  return { ...process.env, PATH: path.filter(Boolean).join(delimiter) }
}

/**
 * @param {import('./packages.mjs').Pin | undefined} pin
 * @param {string[]} args
 */
async function runWithPinnedNode(pin, args) {
  let why = `there is no pinned Node for ${process.platform}-${process.arch}`
  if (pin !== undefined) {
    const node = join(root, 'node_modules', pin.name, 'bin', 'node')
    try {
      return await run(node, args, environmentFor(node))
    } catch (error) {
      const absent = !existsSync(node)
      why = absent ? `${pin.name} is not installed` : `${node} cannot run here (${codeOf(error)})`
    }
  }
  if (!canStandIn(process.versions.node)) {
    throw new Problem(
      `Node ${process.versions.node} is too old, and ${why}.\n` +
        `Install Node ${OLDEST_STAND_IN} or newer (.node-version has the one that is tested), ` +
        'and run the same command again.',
    )
  }
  console.error(`WARNING: ${why}; using Node ${process.versions.node} instead, which is not tested`)
  return run(process.execPath, args, environmentFor(process.execPath))
}

/** @param {string[]} args */
async function main(args) {
  const program = parseArguments(args)
  if (program === undefined) {
    throw new Problem('Usage: node .bootstrap/run.mjs FILE|--bin NAME [argument...]')
  }
  const platform = `${process.platform}-${process.arch}`
  const pin = pinnedNode(platform, readJson('package.json').optionalDependencies ?? {})
  if (whatIsMissing(pin).length > 0) {
    const stopped = await install(pin)
    if (stopped !== undefined) {
      endLike({ code: stopped.code, signal: stopped.signal ?? stopped.asked })
      return
    }
  }
  endLike(await runWithPinnedNode(pin, [fileOf(program), ...program.rest]))
}

if (
  process.argv[1] !== undefined &&
  realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
) {
  try {
    await main(process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}
