import { expect, test } from 'vitest'
import { MINUTES, startSoak } from '../test/support/soak.ts'

test(
  'no view is lost or counted twice and nothing leaks under every kind of fault',
  async () => {
    const { code, text, values, details } = await (await startSoak()).end()
    expect(values).toMatchObject({ lost: 0, extra: 0, wrong: 0, unrecovered: 0, unsteady: 0 })
    expect(values.acknowledged).toBeGreaterThan(100)
    expect(values.unknown).toBeGreaterThan(0) // the pause of Redis is longer than the deadline
    const injected = details.injected as { fault: string; gapMs: number }[]
    expect(injected.map(({ fault }) => fault)).toEqual([
      'Redis killed and restarted',
      'connections cut within a reply',
      'Redis paused for 3 s',
      'a worker killed',
      "the API's clock 30 s back for 3 s",
    ])
    expect(injected[2]?.gapMs).toBeGreaterThan(2_500)
    expect(text).toMatch(/acknowledged: 0 lost, 0 counted twice\. Heap, RSS, .* were steady\.$/m)
    expect(text).toMatch(/^worker heap .* MB +steady *$/m)
    expect(code).toBe(0)
  },
  3 * MINUTES,
)

test(
  'no view is lost on a cluster with failing nodes and a moving slot',
  async () => {
    const { code, values, details } = await (await startSoak('--cluster')).end()
    expect(values).toMatchObject({ lost: 0, extra: 0, wrong: 0, unrecovered: 0, unsteady: 0 })
    const injected = details.injected as { fault: string }[]
    expect(injected.map(({ fault }) => fault)).toEqual([
      'a node killed and restarted',
      'connections killed at all nodes',
      'a slot with sessions moved',
      'a node paused for 3 s',
      'a worker killed',
      "the API's clock 30 s back for 3 s",
    ])
    expect(code).toBe(0)
  },
  3 * MINUTES,
)
