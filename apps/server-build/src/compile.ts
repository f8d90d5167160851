import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type BuildName, programsOf } from './builds.ts'
import { runLogged } from './command.ts'
import { RedisBuildError } from './errors.ts'
import { shortKey } from './installed.ts'
import type { Job } from './job.ts'
import { apartFromOurRepository } from './patches.ts'
import { timed } from './progress.ts'

const SHOWN_LINES = 30

export interface CompileOptions {
  build: BuildName
  key: string
  /** The patched source. */
  tree: string
  /** Variables for make. */
  makeFlags: readonly string[]
}

/**
 * Compiles a source tree in place. The output goes to `<logs>/<build>-<key>.log`.
 *
 * @returns the duration in seconds.
 * @throws RedisBuildError (COMPILE_FAILED) with the last lines of the log and its path.
 */
export async function compile(
  { home, env, progress, signal }: Job,
  { build, key, tree, makeFlags }: CompileOptions,
): Promise<number> {
  const logPath = join(home.logs, `${build}-${shortKey(key)}.log`)
  const identity = `-DONETRIP_BUILD=${build} -DONETRIP_BUILD_KEY=${shortKey(key)}`
  const args = [
    `-j${availableParallelism()}`,
    ...programsOf(build),
    ...withDependencies(makeFlags, tree),
    `REDIS_CFLAGS=${identity}`,
  ]
  const started = performance.now()
  const { code, output } = await timed(progress, `Compiling ${build}`, () =>
    runLogged(logPath, 'make', args, {
      cwd: join(tree, 'src'),
      env: { ...apartFromOurRepository(tree, env), SOURCE_DATE_EPOCH: '0' },
      signal,
    }),
  )
  if (code === 0) return Math.round((performance.now() - started) / 1000)
  const lines = output.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n')
  throw new RedisBuildError(
    'COMPILE_FAILED',
    `Compiling ${build} failed: make exited with ${code ?? 'a signal'}. End of its output:\n\n${lines}\n\nFull log: ${logPath}`,
  )
}

/** Adds the dependencies that newer versions, such as 8.6, have in addition to those of 8.0. */
function withDependencies(makeFlags: readonly string[], tree: string): string[] {
  const more = existsSync(join(tree, 'deps', 'xxhash')) ? ' xxhash' : ''
  return makeFlags.map((flag) => (flag.startsWith('DEPENDENCY_TARGETS=') ? flag + more : flag))
}
