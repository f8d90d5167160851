import { together } from '@onetrip/stack/measure/latencies.ts'
import type { Call } from '@onetrip/stack/measure/workload.ts'
import { serve } from '@onetrip/stack/testing/serve.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { arrivalTimes } from '../../src/drivers/pacer/arrivals.ts'
import { startGenerator } from '../../src/drivers/pacer/pacer.ts'

describe('the generator', () => {
  const call: Call = { method: 'POST', path: '/views', headers: {}, body: '{"item":"a"}' }
  /** Evenly spaced requests over a number of connections. */
  const even = (rate: number, seconds: number, connections: number) => ({
    owned: false,
    calls: Array.from({ length: connections }, () => [call]),
    schedule: arrivalTimes(rate, seconds),
  })

  function generator(signal = new AbortController().signal) {
    const started = startGenerator(signal)
    onTestFinished(async () => void (await started.close()))
    return started
  }

  test('a stall counts in full for every request that is due during it', async () => {
    const stallMs = 300
    let answers = 0
    const url = await serve((_, response) => {
      answers++
      // Blocks this thread, which serves the requests but does not send them.
      if (answers === 100) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
      response.end()
    })
    const run = await generator().run({ url, ...even(500, 1, 4) })
    expect(run).toMatchObject({ due: 500, ok: 500, notSent: 0, errors: {} })
    // With a request every 2 ms, 75 are due in the first half of the stall, and wait at least for the second half.
    const latencies = together([run.latencies])
    const percentile = latencies.getValueAtPercentile(100 * (1 - 74 / 500))
    expect(percentile / 1_000).toBeGreaterThan(stallMs / 2)
    expect(latencies.maxValue / 1_000).toBeGreaterThan(stallMs - 4)
    // Requests that waited for one of the four connections are not counted as late.
    expect(together([run.lateness]).totalCount).toBeLessThan(500 - 140)
  })

  test('counts requests that were not sent', async () => {
    const url = await serve((_, response) => void setTimeout(() => response.end(), 300))
    const run = await generator().run({ url, ...even(20, 0.5, 1) })
    expect(run.due).toBe(10)
    expect(run.notSent).toBeGreaterThan(0)
    expect(run.ok).toBe(10 - run.notSent)
    expect(run.sent).toBe(run.ok + 1)
  })

  test('counts errors by kind, without a latency', async () => {
    let answers = 0
    const url = await serve((request, response) => {
      answers++
      if (answers % 5 === 0) request.socket.destroy()
      else response.writeHead(answers % 5 === 1 ? 503 : 200).end()
    })
    const run = await generator().run({ url, ...even(100, 0.5, 5) })
    expect(run.errors['503']).toBe(10)
    expect(run.errors.UND_ERR_SOCKET).toBe(10)
    expect(run.ok).toBe(30)
    expect(together([run.latencies]).totalCount).toBe(30)
  })

  test('an interrupt ends a run immediately', async () => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((request, response) => {
      request.socket.once('close', () => closed.resolve())
      response.end()
      stop.abort(new Error('enough'))
    })
    const paced = generator(stop.signal)
    await expect(paced.run({ url, ...even(10, 60, 1) })).rejects.toThrow('aborted')
    await paced.close()
    await closed.promise
  })
})
