import { print } from '@onetrip/stack/terminal.ts'
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { reportOf } from './soak/report.ts'
import { readEveryMs, type Soaked, soak } from './soak/run.ts'
import { startSoakStack } from './soak/stack.ts'

// SOAK_MINUTES and SOAK_RATE (requests per second) make a longer run, which prints its tables: docs/measurements/soak.md.
const minutes = Number(process.env.SOAK_MINUTES ?? 0.5)
const rate = Number(process.env.SOAK_RATE ?? 100)
const isLong = minutes > 0.5
const options = { minutes, rate, sessions: isLong ? 100 : 20, seed: 1 }

const timeoutMs = (minutes + 3) * 60_000

const startStack = (cluster: boolean) =>
  startSoakStack({ cluster, readEveryMs: readEveryMs(options) })

async function soakOn(cluster: boolean): Promise<Soaked> {
  const soaked = await soak(await startStack(cluster), options, {
    note: isLong ? print : () => {},
  })
  if (isLong) print(reportOf(soaked))
  return soaked
}

/** Nothing was lost, counted twice or wrong, all faults ended, and no resource grew beyond its bound. */
function expectNothingLost({ lost, extra, discrepancies, injected, verdicts }: Soaked) {
  expect({ lost, extra, discrepancies }).toEqual({ lost: 0, extra: 0, discrepancies: [] })
  expect(injected.filter(({ recovered }) => !recovered)).toEqual([])
  expect(verdicts.filter(({ isSteady }) => !isSteady)).toEqual([])
}

const faultsOf = ({ injected }: Soaked) => [...new Set(injected.map(({ fault }) => fault))]

test(
  'no view is lost or counted twice and nothing leaks under every kind of fault',
  async () => {
    const soaked = await soakOn(false)
    expectNothingLost(soaked)
    expect(soaked.counts.acknowledged).toBeGreaterThan(100)
    expect(soaked.counts.unknown).toBeGreaterThan(0) // the pause of Redis is longer than the deadline
    expect(faultsOf(soaked)).toEqual([
      'Redis killed and restarted',
      'connections cut within a reply',
      'Redis paused for 3 s',
      'an API killed and restarted',
      "the API's clock 30 s back for 3 s",
    ])
    expect(soaked.injected[2]?.gapMs).toBeGreaterThan(2_500)
    expect(reportOf(soaked)).toMatch(/^\| API heap +\| .* MB \| steady +\|$/m)
  },
  timeoutMs,
)

test(
  'no view is lost on a cluster with failing nodes and a moving slot',
  async () => {
    const soaked = await soakOn(true)
    expectNothingLost(soaked)
    expect(faultsOf(soaked)).toEqual([
      'a node killed and restarted',
      'connections killed at all nodes',
      'a slot with sessions moved',
      'a node paused for 3 s',
      'an API killed and restarted',
      "the API's clock 30 s back for 3 s",
    ])
  },
  timeoutMs,
)

test(
  'the audit of an interrupted run finds changed records in Redis',
  async () => {
    const stack = await startStack(false)
    const interrupt = new AbortController()
    const soaking = soak(stack, options, { interrupt: interrupt.signal, note: () => {} })
    const redis = stack.redis.client as Redis
    const mostViewed = () => redis.zrange('viewed:', '0', '1', 'WITHSCORES')
    await expect.poll(async () => Number((await mostViewed())[3])).toBeLessThan(-2)
    const [removed = '', , raised = ''] = await mostViewed()
    await redis.zrem('viewed:', removed)
    await redis.zincrby('viewed:', -1_000, raised)
    interrupt.abort()
    const { lost, extra, discrepancies } = await soaking
    expect(lost).toBeGreaterThan(0)
    expect(extra).toBeGreaterThan(900) // some may have had an unknown outcome
    expect(discrepancies).toHaveLength(2)
    for (const item of [removed, raised]) expect(discrepancies.join()).toContain(`${item}: `)
  },
  timeoutMs,
)
