import { rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { run } from './child.mjs'
import { withInstallLock } from './install-lock.mjs'
import { whatIsMissing } from './packages.mjs'
import { Problem, root } from './repository.mjs'

// Settings of the npm that runs the script which would make `npm ci` install less than everything.
const NARROWING_SETTINGS =
  /^npm_config_(omit|only|production|workspaces?|include_workspace_root|global|location|dry_run|package_lock_only)$/i

/**
 * Installs what is missing. Resolves to the end of an npm that a signal stopped.
 * @param {import('./packages.mjs').Pin | undefined} pin
 * @returns {Promise<import('./child.mjs').End | undefined>}
 */
export async function install(pin) {
  return withInstallLock(async () => {
    if (whatIsMissing(pin).length === 0) return undefined
    console.error('Installing dependencies (once)…')
    const npm = process.env.npm_execpath
    const [command, ...before] =
      npm !== undefined && basename(npm) === 'npm-cli.js' ? [process.execPath, npm] : ['npm']
    // .npmrc could leave out a kind of dependency too, and so does NODE_ENV=production.
    const flags = ['--no-audit', '--no-fund', '--loglevel=error', '--include=dev']
    // npm ci empties node_modules first, and writes this list of what is installed last: an
    // installation that is killed on the way counts as none.
    rmSync(join(root, 'node_modules', '.package-lock.json'), { force: true })
    const args = [...before, 'ci', ...flags, '--include=optional']
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !NARROWING_SETTINGS.test(name)),
    )
    // npm first ends what it is at, which takes as long as the installation, and says nothing.
    const tell = () => console.error('\nStopping when npm has tidied up … (Ctrl-C again to kill)')
    process.once('SIGINT', tell)
    const end = await run(command ?? 'npm', args, env).catch((error) => {
      throw new Problem(`Cannot run npm to install the dependencies: ${error.message}`)
    })
    process.off('SIGINT', tell)
    if (end.code === 0) {
      const missing = whatIsMissing(pin).filter((path) => path !== `node_modules/${pin?.name}`)
      if (missing.length > 0) console.error(`npm left out ${missing.join(', ')}`)
      return undefined
    }
    if (end.signal !== null || end.asked !== null) return end
    throw new Problem(
      `Could not install the dependencies: npm ci exited with ${end.code}; what it said is above.\n` +
        'It needs the npm registry (what `npm config get registry`' +
        ' names). Run the same command again to retry.',
    )
  })
}
