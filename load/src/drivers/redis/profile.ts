import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryRunFolder } from '@onetrip/stack/places.ts'

const run = promisify(execFile)

/** Shares of a thread's CPU time by function, 0 to 1. `kernel` is the sum of all functions of the kernel. */
export type Profile = Readonly<Record<string, number>>

/** Samples per second of CPU time. */
const FREQUENCY = 4_999

/**
 * Samples a thread with perf during `work`.
 *
 * @param work must take longer than `seconds`.
 * @returns `profile` is null if perf is not installed, lacks permission, or has no samples of the thread.
 * @throws the error of `work`; the reason of `signal`.
 */
export async function profileThread<Result>(
  thread: number,
  { seconds, signal }: { seconds: number; signal: AbortSignal },
  work: () => Promise<Result>,
): Promise<{ profile: Profile | null; result: Result }> {
  const folder = await temporaryRunFolder('profile-')
  const file = join(folder, 'perf.data')
  const options = { signal, env: { ...process.env, LC_ALL: 'C' } }
  const record = `record --freq ${FREQUENCY} --tid ${thread} --output ${file} -- sleep ${seconds}`
  const report = `report --stdio --sort symbol --field-separator ; --input ${file}`
  try {
    const sampled = run('perf', record.split(' '), options)
      .then(() => run('perf', report.split(' '), options))
      .then(({ stdout }) => parseProfile(stdout))
      .catch(() => null)
    const working = work()
    await Promise.allSettled([sampled, working]) // perf must end before its folder is removed
    signal.throwIfAborted()
    return { profile: await sampled, result: await working }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Parses lines such as `37.36%  ;[.] listSearchKey`. `[k]` instead of `[.]` means a function of the kernel. Symbol
 * versions (`@@GLIBC_2.34`) are removed. Returns null without such lines.
 */
export function parseProfile(text: string): Profile | null {
  const profile: Record<string, number> = {}
  for (const line of text.split('\n')) {
    const [, percent, space, symbol = ''] = /^\s*([\d.]+)%\s*;\[(.)\] ([^\s;@]+)/.exec(line) ?? []
    const name = space === 'k' ? 'kernel' : symbol
    if (percent) profile[name] = (profile[name] ?? 0) + Number(percent) / 100
  }
  return Object.keys(profile).length > 0 ? profile : null
}
