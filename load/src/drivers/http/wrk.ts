import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isLocal } from '@onetrip/stack/address.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { describeExit, startProgram } from '@onetrip/stack/program.ts'
import {
  type Latency,
  type Progress,
  percentilesOf,
  type Saturate,
  type Saturation,
  TIMEOUT_S,
} from './generator.ts'
import { type Call, headersOf } from './workload.ts'

// The only file that knows wrk, beside the script that wrk runs. Its one thread takes the requests in
// turn for whichever connection is free, so the requests are the same ones but a connection has no
// sessions of its own.

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

/** What the script prints when wrk is done. */
interface Printed {
  microseconds: number
  answers: number
  /** Of all requests that the script handed out, and of all answers. */
  bytesSent: number
  bytesReceived: number
  requested: number
  cpuSeconds: number
  statuses: Record<string, number>
  failures: { connect: number; read: number; write: number; status: number; timeout: number }
  /** Microseconds and how many answers took so long, ascending. */
  latencies: [microseconds: number, count: number][]
}

/**
 * The version of wrk.
 *
 * @throws Problem, with how to install it, when there is none.
 */
export async function wrkVersion(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('wrk', ['--version'])
    return stdout
  } catch (error) {
    // It prints its version, then how it is used, and exits with 1.
    const { code, stdout = '' } = error as { code?: string | number; stdout?: string }
    const version = /^wrk (?:debian\/)?([\d.]+)/.exec(stdout)?.[1]
    if (version !== undefined) return version
    throw new Problem(
      code === 'ENOENT'
        ? '--generator wrk needs wrk, which is not installed. On Debian and Ubuntu: apt-get install wrk; on macOS: brew install wrk. Or leave the option out: autocannon comes with the repository.'
        : `wrk cannot be run: ${(error as Error).message}`,
    )
  }
}

/** @throws ProgramError, Problem when wrk cannot do it. */
export const saturateByWrk: Saturate = async ({
  url,
  owned,
  calls,
  seconds,
  signal,
  onProgress,
}) => {
  if (!owned && !isLocal(url)) throw new Error(`load only goes to this machine, not to ${url}`)
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-wrk-'))
  try {
    const file = join(folder, 'requests')
    await writeFile(file, requestLines(calls))
    let output = ''
    const meter = rateMeter()
    const wrk = await startProgram({
      name: 'wrk',
      command: 'wrk',
      args: [
        ...['--threads', '1', '--connections', String(calls.length)],
        ...['--duration', `${seconds}s`, '--timeout', `${TIMEOUT_S}s`, '--script', script, url],
      ],
      env: { ...process.env, ONETRIP_REQUESTS: file },
      ready: /^wrk is ready$/,
      signal,
      onLine: (line) => {
        if (line.startsWith('{')) output = line
        const answered = /^answered (\d+)$/.exec(line)?.[1]
        if (answered !== undefined) onProgress?.(meter(Number(answered)))
      },
    })
    const stop = () => wrk.signal('SIGINT')
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    const exit = await wrk.exited
    signal.removeEventListener('abort', stop)
    if (output === '') {
      const last = wrk.lastLines.map((line) => `\n  ${line}`).join('')
      throw new Problem(`wrk printed no result (${describeExit(exit)}):${last}`)
    }
    return resultOf(JSON.parse(output), calls.length)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Turns the answers so far into those per second since the last time. */
function rateMeter(): (answers: number) => Progress {
  let last = { at: performance.now(), answers: 0 }
  return (answers) => {
    const now = { at: performance.now(), answers }
    const requestsPerSecond = ((now.answers - last.answers) * 1_000) / (now.at - last.at)
    last = now
    return { requestsPerSecond, failures: 0 }
  }
}

/**
 * A line for each request, in the order in which the connections would send them: method, path and
 * body, then its headers, all set apart by tabs.
 */
function requestLines(calls: readonly (readonly Call[])[]): string {
  const lines: string[] = []
  const most = Math.max(...calls.map(({ length }) => length))
  for (let index = 0; index < most; index++) {
    for (const list of calls) {
      const call = list[index]
      if (!call) continue
      const headers = Object.entries(headersOf(call)).map(([name, value]) => `${name}: ${value}`)
      lines.push(`${[call.method, call.path, call.body ?? '', ...headers].join('\t')}\n`)
    }
  }
  return lines.join('')
}

function resultOf(printed: Printed, connections: number): Saturation {
  const { microseconds, answers, cpuSeconds, statuses, failures } = printed
  const { bytesSent, bytesReceived, requested } = printed
  const seconds = microseconds / 1e6
  const ok = Object.entries(statuses).filter(([status]) => status.startsWith('2'))
  const { status: _, ...withoutAnswer } = failures
  const errors = Object.entries({ ...statuses, ...withoutAnswer }).filter(
    ([kind, count]) => !kind.startsWith('2') && count > 0,
  )
  return {
    seconds,
    // Answered, given up with their connection, or in flight at the end: one for each connection.
    sent: answers + failures.read + connections,
    answered: answers,
    ok: ok.reduce((sum, [, count]) => sum + count, 0),
    errors: Object.fromEntries(errors.toSorted(([, a], [, b]) => b - a)),
    latency: latencyOf(uncorrected(printed, connections)),
    bytes: {
      // Without those that were handed out and not answered.
      sent: requested === 0 ? 0 : (bytesSent / requested) * answers,
      received: bytesReceived,
    },
    generator: { cpuSeconds, utilization: cpuSeconds / seconds },
  }
}

type Histogram = readonly (readonly [microseconds: number, count: number])[]

/**
 * The latencies as they were measured. wrk 4 adds invented ones before it tells them: for an answer that
 * took v microseconds, where one took e on average, also v - e, v - 2e … as long as they are above e
 * (`stats_correct` in its sources, against coordinated omission). So above e each count holds those of
 * e, 2e … further up as well, and taking away the count at v + e leaves what was measured.
 *
 * @throws Problem when the counts do not add up afterwards: it is another wrk then.
 */
export function uncorrected(
  printed: Pick<Printed, 'microseconds' | 'answers' | 'latencies' | 'failures'>,
  connections: number,
): Histogram {
  const { microseconds, answers, latencies, failures } = printed
  const measured = answers - failures.timeout
  const total = (histogram: Histogram) => histogram.reduce((sum, [, count]) => sum + count, 0)
  if (total(latencies) === measured) return latencies
  const expected = Math.floor(microseconds / Math.floor(answers / connections))
  const counts = new Map(latencies)
  const original = latencies.map(
    ([latency, count]) =>
      [
        latency,
        latency > expected ? count - (counts.get(latency + expected) ?? 0) : count,
      ] as const,
  )
  if (total(original) !== measured || original.some(([, count]) => count < 0)) {
    throw new Problem(
      'wrk tells latencies in a way that is not known here; it was tested with wrk 4.1.0.',
    )
  }
  return original
}

/** As the percentiles of autocannon's latencies: the smallest latency that so many did not exceed. */
function latencyOf(histogram: Histogram): Latency {
  const total = histogram.reduce((sum, [, count]) => sum + count, 0)
  const milliseconds = (microseconds: number) => microseconds / 1_000
  const percentile = (share: number) => {
    let below = 0
    for (const [latency, count] of histogram) {
      below += count
      if (below >= (total * share) / 100) return milliseconds(latency)
    }
    return null
  }
  const highest = histogram.findLast(([, count]) => count > 0)?.[0]
  const sum = histogram.reduce((time, [latency, count]) => time + latency * count, 0)
  return {
    ...percentilesOf((share) => (total === 0 ? null : percentile(share))),
    max: highest === undefined ? null : milliseconds(highest),
    mean: total === 0 ? null : milliseconds(sum / total),
  }
}
