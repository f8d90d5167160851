import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { requireOwnHost } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { runForJson } from '../json-program.ts'
import { latencyHistogram, record, summaryOf } from '../pacer/latencies.ts'
import { type Saturate, type Saturation, TIMEOUT_S } from './generator.ts'
import type { Call } from './workload.ts'

// The only file that knows wrk, beside the script that wrk runs. Its one thread takes the requests in
// turn for whichever connection is free, so the requests are the same but a connection has no sessions
// of its own.

/** What `wrk.lua` prints at the end. */
interface Printed {
  microseconds: number
  answers: number
  cpuSeconds: number
  statuses: Record<string, number>
  failures: { connect: number; read: number; write: number; timeout: number }
  /** Microseconds and how many answers took so long, ascending. */
  latencies: Latencies
}

type Latencies = readonly (readonly [microseconds: number, count: number])[]

/** @throws Problem, with how to install it, when it cannot be run. */
export async function wrkVersion(): Promise<string> {
  // It prints its version, then how it is used, and exits with 1.
  const { stdout = '' } = await promisify(execFile)('wrk', ['--version']).catch((e) => e)
  const version = /^wrk (?:debian\/)?([\d.]+)/.exec(stdout)?.[1]
  if (version !== undefined) return version
  throw new Problem(
    '--generator wrk needs wrk, which cannot be run. On Debian and Ubuntu: apt-get install wrk; on macOS: brew install wrk. Or leave the option out: autocannon comes with the repository.',
  )
}

/** @throws Problem when wrk cannot do it; the reason of the signal. */
export const saturateByWrk: Saturate = async ({ url, owned, calls, seconds, signal }) => {
  requireOwnHost(url, owned)
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-wrk-'))
  try {
    const file = join(folder, 'requests')
    await writeFile(file, requestLines(calls))
    const printed = await runForJson<Printed>(
      {
        name: 'wrk',
        command: 'wrk',
        args: [
          ...['--threads', '1', '--connections', String(calls.length)],
          ...['--duration', `${seconds}s`, '--timeout', `${TIMEOUT_S}s`],
          ...['--script', join(import.meta.dirname, 'wrk.lua'), url],
        ],
        env: { ...process.env, ONETRIP_REQUESTS: file },
      },
      signal,
    )
    return resultOf(printed, calls.length)
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

function resultOf(printed: Printed, connections: number): Saturation {
  const { answers, cpuSeconds, statuses, failures } = printed
  const seconds = printed.microseconds / 1e6
  const kinds = Object.entries({ ...statuses, ...failures }).filter(([, count]) => count > 0)
  const [ok = [], errors = []] = [true, false].map((wanted) =>
    kinds.filter(([kind]) => kind.startsWith('2') === wanted),
  )
  const histogram = latencyHistogram()
  for (const [micros, count] of uncorrected(printed, connections)) {
    if (count > 0) record(histogram, micros / 1_000, count)
  }
  return {
    seconds,
    // Answered, given up with their connection, or in flight at the end: one for each connection.
    sent: answers + failures.read + connections,
    ok: ok.reduce((sum, [, count]) => sum + count, 0),
    errors: Object.fromEntries(errors),
    latency: summaryOf(histogram),
    generator: { cpuSeconds, utilization: cpuSeconds / seconds },
  }
}

/**
 * The latencies as they were measured. wrk 4 adds invented ones before it reports them: for an answer that
 * took v microseconds, where one took e on average, also v - e, v - 2e … as long as they are above e
 * (`stats_correct` in its sources, against coordinated omission). So above e each count contains those of
 * answers e, 2e … slower, and subtracting the count at v + e leaves what was measured.
 *
 * @throws Problem when the counts do not add up afterwards: another version of wrk.
 */
export function uncorrected(
  printed: Pick<Printed, 'microseconds' | 'answers' | 'latencies' | 'failures'>,
  connections: number,
): Latencies {
  const { microseconds, answers, latencies, failures } = printed
  const measured = answers - failures.timeout
  const total = (list: Latencies) => list.reduce((sum, [, count]) => sum + count, 0)
  if (total(latencies) === measured) return latencies
  const expected = Math.floor(microseconds / Math.floor(answers / connections))
  const counts = new Map(latencies)
  const invented = (latency: number) =>
    latency > expected ? (counts.get(latency + expected) ?? 0) : 0
  const original = latencies.map(([micros, count]) => [micros, count - invented(micros)] as const)
  if (total(original) === measured && original.every(([, count]) => count >= 0)) return original
  throw new Problem(
    'wrk reports latencies in a way that is not known here; it was tested with wrk 4.1.0.',
  )
}
