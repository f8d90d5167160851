import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { runForJson } from '../json-program.ts'
import { type Saturate, TIMEOUT_S } from './saturate.ts'
import type { Call } from './workload.ts'

// The only file that knows wrk, beside the script that wrk runs. Its one thread takes the requests in
// turn for whichever connection is free, so the requests are the same but a connection has no sessions
// of its own. Its latencies are not used: it adds invented ones, against coordinated omission.

/** What `wrk.lua` prints at the end. */
interface Printed {
  microseconds: number
  answers: number
  cpuSeconds: number
  statuses: Record<string, number>
  failures: Record<'connect' | 'read' | 'write' | 'timeout', number>
}

/** `wrk 4.1.0`. @throws Problem, with how to install it, when it cannot be run. */
export async function wrkVersion(): Promise<string> {
  // It prints its version, then how it is used, and exits with 1.
  const { stdout = '' } = await promisify(execFile)('wrk', ['--version']).catch((e) => e)
  const version = /^wrk (?:debian\/)?([\d.]+)/.exec(stdout)?.[1]
  if (version !== undefined) return `wrk ${version}`
  throw new Problem(
    '--generator wrk needs wrk, which cannot be run. On Debian and Ubuntu: apt-get install wrk; on macOS: brew install wrk. Or leave the option out: autocannon comes with the repository.',
  )
}

/** @throws Problem when wrk cannot do it; the reason of the signal. */
export const saturateByWrk: Saturate = async ({ url, owned, calls, seconds, signal }) => {
  requireOwnHost(url, owned)
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-wrk-'))
  const file = join(folder, 'requests')
  try {
    await writeFile(file, requestLines(calls))
    const args = [
      ...['--threads', '1', '--connections', String(calls.length), '--duration', `${seconds}s`],
      ...['--timeout', `${TIMEOUT_S}s`, '--script', join(import.meta.dirname, 'wrk.lua'), url],
    ]
    const env = { ...process.env, ONETRIP_REQUESTS: file }
    return resultOf(
      await runForJson({ name: 'wrk', command: 'wrk', args, env }, signal),
      calls.length,
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A line for each request, as `wrk.lua` reads it, in the order in which the connections would send them. */
function requestLines(calls: readonly (readonly Call[])[]): string {
  const turns = Array.from({ length: Math.max(...calls.map(({ length }) => length)) })
  const inTurn = turns.flatMap((_, index) => calls.flatMap((list) => list[index] ?? []))
  const lines = inTurn.map((call) => {
    const headers = Object.entries(call.headers).map(([name, value]) => `${name}: ${value}`)
    return [call.method, call.path, call.body ?? '', ...headers].join('\t')
  })
  return `${lines.join('\n')}\n`
}

function resultOf(printed: Printed, connections: number): Awaited<ReturnType<Saturate>> {
  const { answers, cpuSeconds, statuses, failures } = printed
  const seconds = printed.microseconds / 1e6
  const kinds = Object.entries({ ...statuses, ...failures })
  const errors = kinds.filter(([kind, count]) => count > 0 && !kind.startsWith('2'))
  return {
    seconds,
    // Answered, given up with their connection, or in flight at the end: one for each connection.
    sent: answers + failures.read + connections,
    ok: kinds.reduce((sum, [kind, count]) => (kind.startsWith('2') ? sum + count : sum), 0),
    errors: Object.fromEntries(errors),
    latency: null,
    generator: { cpuSeconds, utilization: cpuSeconds / seconds },
  }
}
