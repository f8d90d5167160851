import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Call } from '../src/http/workload.ts'
import { arrivalTimes } from '../src/latency/arrivals.ts'
import { type PacedGenerator, startGenerator } from '../src/latency/generator.ts'
import { curveOf, figuresOf, latencyHistogram, record } from '../src/latency/latencies.ts'
import { conclusions, tables } from '../src/latency/report.ts'
import type { LatencySample } from '../src/latency/result.ts'
import type { LatencyRun } from '../src/latency/sample.ts'
import { doubtsOf, summarizeLatencies } from '../src/latency/summary.ts'
import type { Variant } from '../src/stack/api.ts'

describe('when requests are due', () => {
  const rates = fc.double({ min: 0.5, max: 5_000, noNaN: true })
  const durations = fc.double({ min: 0.1, max: 2, noNaN: true })
  const seeds = fc.integer({ min: 1, max: 2 ** 31 - 2 })

  test('evenly spaced: all of a run, none beyond it', () => {
    fc.assert(
      fc.property(rates, durations, (rate, seconds) => {
        const times = arrivalTimes({ rate, seconds, arrivals: 'even', seed: 1 })
        expect(times).toHaveLength(Math.ceil(rate * seconds))
        expect(times[0]).toBe(0)
        const apart = 1_000 / rate
        expect(times.every((time, index) => Math.abs(time - index * apart) < 1e-6)).toBe(true)
        expect(times.at(-1)).toBeLessThan(seconds * 1_000)
      }),
    )
  })

  test('at random: growing, within the run, as many as the rate says, the same for a seed', () => {
    fc.assert(
      fc.property(rates, durations, seeds, (rate, seconds, seed) => {
        const options = { rate, seconds, arrivals: 'poisson', seed } as const
        const times = arrivalTimes(options)
        expect(times).toEqual(arrivalTimes(options))
        expect(times.every((time, index) => time > (times[index - 1] ?? 0))).toBe(true)
        expect(times.at(-1) ?? 0).toBeLessThan(seconds * 1_000)
        // Poisson: the variance is the mean.
        const mean = rate * seconds
        expect(Math.abs(times.length - mean)).toBeLessThan(6 * Math.sqrt(mean) + 6)
      }),
    )
  })

  test('at random: gaps are distributed exponentially', () => {
    const times = arrivalTimes({ rate: 10_000, seconds: 2, arrivals: 'poisson', seed: 17 })
    const gaps = Array.from(times, (time, index) => time - (times[index - 1] ?? 0))
    for (const share of [0.1, 0.5, 0.9, 0.99]) {
      const quantile = -Math.log(1 - share) / 10
      const below = gaps.filter((gap) => gap <= quantile).length / gaps.length
      expect(below).toBeCloseTo(share, 1)
    }
  })

  test('not more than memory holds', () => {
    const options = { rate: 1_000_000, seconds: 3_600, arrivals: 'even', seed: 1 } as const
    expect(() => arrivalTimes(options)).toThrow(/more than 10 million/)
  })
})

describe('percentiles', () => {
  test('a request that failed is slower than all others; ten must be beyond', () => {
    const latencies = fc.array(fc.double({ min: 0.01, max: 50_000, noNaN: true }), {
      maxLength: 400,
    })
    fc.assert(
      fc.property(latencies, fc.nat(100), (answered, failed) => {
        const histogram = latencyHistogram()
        for (const latency of answered) record(histogram, latency)
        const due = answered.length + failed
        const sorted = answered.toSorted((a, b) => a - b)
        const figures = figuresOf(histogram, due)
        for (const [name, share] of [
          ['p50', 50],
          ['p90', 90],
          ['p99', 99],
        ] as const) {
          const rank = Math.max(1, Math.ceil((due * share) / 100))
          const expected = due - rank < 10 ? undefined : sorted[rank - 1]
          if (expected === undefined) expect(figures[name]).toBeNull()
          else
            expect(Math.abs((figures[name] ?? 0) - expected)).toBeLessThan(0.001 * expected + 0.002)
        }
        expect(figures.max === null).toBe(answered.length === 0)
      }),
    )
  })

  test('a curve ends where fewer than ten requests are beyond', () => {
    const histogram = latencyHistogram()
    for (let index = 1; index <= 10_000; index++) record(histogram, index)
    const curve = curveOf(histogram, 10_000)
    expect(curve[0]?.share).toBe(0)
    expect(curve.at(-1)?.share).toBeCloseTo(0.999, 9)
    expect(curve.every(({ ms }, index) => ms >= (curve[index - 1]?.ms ?? 0))).toBe(true)
  })
})

test('a row is doubtful when the generator was late or busy', () => {
  const pacer = (p99: number, utilization = 0.5) => ({
    lateness: { p50: 0.1, p99, max: 9 },
    utilization,
  })
  expect(doubtsOf(pacer(0.9), 1)).toEqual([])
  expect(doubtsOf(pacer(1.1), 4)).toEqual(['pacer late'])
  expect(doubtsOf(pacer(1.1), 40)).toEqual([])
  expect(doubtsOf(pacer(1.1), null)).toEqual(['pacer late'])
  expect(doubtsOf(pacer(1.1), Number.POSITIVE_INFINITY)).toEqual([])
  expect(doubtsOf(pacer(0.1, 0.97), 1)).toEqual(['generator at its limit'])
})

describe('what is told', () => {
  const rates = [{ share: 0.5, requestsPerSecond: 1_000 }]
  const capacity = {
    ...{ generator: 'autocannon 9.0.0', slowest: 'naive' as const },
    requestsPerSecond: { naive: { median: 2_000, min: 1_900, max: 2_100 } },
  }

  /** Two rounds of 1,000 requests, each of which took so many milliseconds, as far as they succeeded. */
  function runsOf(variant: Variant, ms: number, notSent: number, late = 0.1): LatencyRun[] {
    return [1, 2].map((round) => {
      const [latencies, lateness] = [latencyHistogram(), latencyHistogram()]
      for (let index = notSent; index < 1_000; index++) {
        record(latencies, ms * round)
        record(lateness, late)
      }
      const ok = 1_000 - notSent
      const sample: LatencySample = {
        ...{ variant, round, rate: 1_000, due: 1_000, ok, notSent, errors: {}, seconds: 1 },
        latency: figuresOf(latencies, 1_000),
        longestLine: notSent,
        pacer: { lateness: { p50: late, p99: late, max: late }, utilization: 0.2 },
        perRequest: { generatorCpuMicros: 30, apiCpuMicros: 40, redisCpuMicros: 10 },
        elsewhere: 0.01,
      }
      return { sample, latencies, lateness }
    })
  }

  function told(runs: readonly LatencyRun[], variants: Variant[]) {
    const summaries = summarizeLatencies(runs, rates, variants)
    const result = { rates, capacity, summaries }
    return {
      summaries,
      text: stripVTControlCharacters(`${tables(result)}\n${conclusions(result)}`),
    }
  }

  test('percentiles of all rounds, with the range of the rounds', () => {
    const { summaries, text } = told(
      [...runsOf('naive', 4, 0), ...runsOf('batch', 1, 0)],
      ['naive', 'batch'],
    )
    expect(summaries[1]).toMatchObject({
      due: 2_000,
      ok: 2_000,
      notSent: 0,
      doubts: [],
      share: 0.5,
    })
    expect(text).toContain('1,000 requests/s (50 % of what naive can do)')
    expect(text).toMatch(/^batch +1\.00 +2\.00 +2\.00 +2\.00 \(1\.00-2\.00\) +- +- +2\.00 +0 /m)
    expect(text).toContain(
      '99 % of the answers take at most 2.00 ms with batch, 8.00 ms with naive.',
    )
  })

  test('what failed is no latency, and no claim is made of it', () => {
    const { summaries, text } = told(
      [...runsOf('naive', 4, 200), ...runsOf('batch', 1, 0)],
      ['naive', 'batch'],
    )
    expect(summaries[0]).toMatchObject({
      notSent: 400,
      latency: { p75: expect.closeTo(8, 1), p90: null, p99: null },
    })
    expect(text).toMatch(
      /^naive +8\.00 +8\.00 +failed +failed +failed +failed +8\.00 +not sent: 400 /m,
    )
    expect(text).not.toContain('99 % of the answers')
    expect(text).toContain('count as slower than all others')
  })

  test('a late generator is marked', () => {
    const { text } = told(
      [...runsOf('naive', 4, 0), ...runsOf('batch', 1, 0, 1.5)],
      ['naive', 'batch'],
    )
    expect(text).toMatch(/^batch \* /m)
    expect(text).toMatch(/^\* Requests were sent too late/m)
    expect(text).not.toContain('99 % of the answers')
  })
})

describe('the generator', () => {
  const call: Call = { method: 'POST', path: '/views', token: 'x', body: '{"item":"a"}' }
  const over = (connections: number) => Array.from({ length: connections }, () => [call])
  const even = (rate: number, seconds: number) =>
    arrivalTimes({ rate, seconds, arrivals: 'even', seed: 1 })

  async function serve(answer: RequestListener): Promise<string> {
    const server = createServer(answer)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  function generator(signal = new AbortController().signal): PacedGenerator {
    const started = startGenerator(signal)
    onTestFinished(() => started.close())
    return started
  }

  test('a stall counts in full for every request that was due meanwhile', async () => {
    const stallMs = 300
    let answers = 0
    const url = await serve((_, response) => {
      answers++
      // This thread serves and does not send: everything that comes meanwhile has to wait.
      if (answers === 100) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
      response.end()
    })
    const run = await generator().run({ url, owned: false, calls: over(4), schedule: even(500, 1) })
    expect(run).toMatchObject({ due: 500, ok: 500, notSent: 0, errors: {} })
    // One every 2 ms: 75 of them were due in the first half of the stall, and waited for the second.
    expect(run.latencies.percentile(100 * (1 - 74 / 500)) / 1_000).toBeGreaterThan(stallMs / 2)
    expect(run.latencies.max / 1_000).toBeGreaterThan(stallMs - 4)
    // With four connections, all the others were in line.
    expect(run.longestLine).toBeGreaterThan(140)
    // Having to wait for a connection is not the pacer's lateness.
    expect(run.lateness.count).toBeLessThan(500 - 140)
  })

  test('what is not sent in time is counted', async () => {
    const url = await serve((_, response) => void setTimeout(() => response.end(), 300))
    const run = await generator().run({
      url,
      owned: false,
      calls: over(1),
      schedule: even(20, 0.5),
    })
    expect(run.due).toBe(10)
    expect(run.notSent).toBeGreaterThan(0)
    expect(run.ok).toBe(10 - run.notSent)
    expect(run.sent).toBe(run.ok + 1)
  })

  test('errors are counted by kind, and make no latency', async () => {
    let answers = 0
    const url = await serve((request, response) => {
      answers++
      if (answers % 5 === 0) request.socket.destroy()
      else response.writeHead(answers % 5 === 1 ? 503 : 200).end()
    })
    const run = await generator().run({
      url,
      owned: false,
      calls: over(5),
      schedule: even(100, 0.5),
    })
    expect(run.errors['503']).toBe(10)
    expect(run.errors.UND_ERR_SOCKET).toBe(10)
    expect(run.ok).toBe(30)
    expect(run.latencies.count).toBe(30)
  })

  test('an interrupt ends it at once', async () => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((request, response) => {
      request.socket.once('close', () => closed.resolve())
      response.end()
      stop.abort(new Error('enough'))
    })
    const running = generator(stop.signal).run({
      ...{ url, owned: false, calls: over(1), schedule: even(10, 60) },
    })
    await expect(running).rejects.toThrow('enough')
    await closed.promise
  })

  test('says when nobody is there, and goes to this machine only', async () => {
    const options = { owned: false, calls: over(1), schedule: even(10, 1) }
    const port = new URL(await serve(() => {})).port
    await expect(generator().run({ ...options, url: `http://127.0.0.2:${port}` })).rejects.toThrow(
      /takes no connections: ECONNREFUSED/,
    )
    await expect(generator().run({ ...options, url: 'http://192.0.2.1' })).rejects.toThrow(
      /only goes to this machine/,
    )
  })
})
