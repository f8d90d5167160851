import { expect, test } from 'vitest'
import { runExperiment } from './support/experiment.ts'

const short = ['--rounds=1', '--duration=0.5', '--warmup=0.2', '--connections=4', '--sessions=16']

/** Round trips and connections per request: one for the session, the others for the application's update. */
const expected = {
  sale: { naive: { roundTrips: 3, connections: 2 }, pipeline: { roundTrips: 2 } },
  feed: { naive: { roundTrips: 4, connections: 2 }, pipeline: { roundTrips: 2 } },
  // Seven SETBITs, one per hash function, then BITCOUNT and EXPIRE.
  unique: { naive: { roundTrips: 11, connections: 2 }, pipeline: { roundTrips: 2 } },
  // Without a cache, and with one.
  risk: { naive: { roundTrips: 3, connections: 2 }, pipeline: { roundTrips: 1 } },
}

test.each(Object.entries(expected))(
  '--workload %s: naive, pipeline and batch',
  async (name, of) => {
    const reads = name === 'feed' ? ['--reads=0'] : []
    const { result } = await runExperiment('http', [
      ...short,
      ...reads,
      `--workload=${name}`,
      '--variants=naive,pipeline,batch',
    ])
    expect(result.options).toMatchObject({ workload: name, sessions: 16 })
    const samples = new Map(result.samples.map((sample) => [sample.case.variant, sample]))
    for (const { errors } of samples.values()) expect(errors).toBeUndefined()
    const value = (variant: string, metric: string) => samples.get(variant)?.values[metric] ?? -1
    for (const [variant, metrics] of Object.entries(of)) {
      for (const [metric, is] of Object.entries(metrics)) {
        // Requests in flight at the end of the run have made only some of their round trips.
        const share = value(variant, metric) / is
        expect(share, `${variant} ${metric}`).toBeGreaterThan(0.75)
        expect(share, `${variant} ${metric}`).toBeLessThan(1.1)
      }
    }
    expect(value('pipeline', 'connections')).toBeCloseTo(0, 1)
    expect(value('batch', 'roundTrips')).toBeLessThan(value('pipeline', 'roundTrips'))
  },
)
