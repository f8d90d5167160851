import { createWriteStream, existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { stripVTControlCharacters } from 'node:util'
import { type BuildName, programsOf } from './builds.ts'
import { runCommand } from './command.ts'
import { RedisBuildError } from './errors.ts'
import { shortKey } from './installed.ts'
import type { Job } from './job.ts'
import { apartFromOurRepository } from './patches.ts'

const SHOWN_LINES = 30

export interface CompileOptions {
  build: BuildName
  key: string
  /** The patched source. */
  tree: string
  /** Variables for make. */
  makeFlags: readonly string[]
  jobs?: number | undefined
}

/**
 * Compiles a source tree in place. The output goes to `<logs>/<build>-<key>.log`.
 *
 * @returns the duration in seconds.
 * @throws RedisBuildError (COMPILE_FAILED) with the last lines of the log and its path.
 */
export async function compile(
  { home, env, progress, signal }: Job,
  { build, key, tree, makeFlags, jobs = availableParallelism() }: CompileOptions,
): Promise<number> {
  await mkdir(home.logs, { recursive: true })
  const logPath = join(home.logs, `${build}-${shortKey(key)}.log`)
  const log = createWriteStream(logPath)
  const started = performance.now()
  const seconds = () => Math.round((performance.now() - started) / 1000)
  const activity = makeActivity()
  let tail = ''

  progress.step(`Compiling ${build}`)
  const tick = setInterval(
    () => progress.update(`Compiling ${build}: ${activity.describe()}, ${seconds()} s`),
    1_000,
  )
  try {
    const { code } = await runCommand(
      'make',
      makeArguments(build, key, withDependencies(makeFlags, tree), jobs),
      {
        cwd: join(tree, 'src'),
        signal,
        env: { ...apartFromOurRepository(tree, env), SOURCE_DATE_EPOCH: '0' },
        onOutput(text) {
          log.write(text)
          activity.read(text)
          tail = (tail + text).slice(-20_000)
        },
      },
    )
    if (code === 0) {
      progress.update(`Compiled ${build}: ${activity.files} files, ${seconds()} s`)
      return seconds()
    }
    const lines = tail.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n')
    throw new RedisBuildError(
      'COMPILE_FAILED',
      `Compiling ${build} failed: make exited with ${code ?? 'a signal'}. End of its output:\n\n${lines}\n\nFull log: ${logPath}`,
    )
  } finally {
    clearInterval(tick)
    log.end()
    await finished(log)
  }
}

/** Derives the progress from make's output. */
export function makeActivity() {
  let unread = ''
  let last = ''
  const activity = {
    /** Files compiled so far. */
    files: 0,
    /** Adds a chunk of the output; a chunk may end within a line. */
    read(text: string): void {
      const lines = (unread + text).split('\n')
      unread = lines.pop() ?? ''
      for (const line of lines) activity.readLine(stripVTControlCharacters(line))
    },
    readLine(line: string): void {
      const linked = /^ *LINK (\S+)/.exec(line)?.[1]
      if (linked) last = `linking ${linked}`
      else if (line.startsWith('checking '))
        last = 'configuring jemalloc' // the only dependency with a configure script
      else if (/^ *CC |(^| )-c /.test(line)) {
        activity.files += 1
        last = ''
      }
    },
    /** Such as `174 files` or `174 files, linking redis-server`. */
    describe: () => `${activity.files} files${last && `, ${last}`}`,
  }
  return activity
}

/** Adds the dependencies that newer versions, such as 8.6, have in addition to those of 8.0. */
export function withDependencies(makeFlags: readonly string[], tree: string): string[] {
  const more = existsSync(join(tree, 'deps', 'xxhash')) ? ' xxhash' : ''
  return makeFlags.map((flag) => (flag.startsWith('DEPENDENCY_TARGETS=') ? flag + more : flag))
}

function makeArguments(
  build: BuildName,
  key: string,
  makeFlags: readonly string[],
  jobs: number,
): string[] {
  const identity = `-DONETRIP_BUILD=${build} -DONETRIP_BUILD_KEY=${shortKey(key)}`
  return [`-j${jobs}`, ...programsOf(build), ...makeFlags, `REDIS_CFLAGS=${identity}`]
}
