import type { Sample } from '../../src/http/sample.ts'

/** A sample that is plausible in every field; what a test is about, it gives. */
export function sample(
  given: Pick<Sample, 'variant' | 'round' | 'requestsPerSecond'> & Partial<Sample>,
): Sample {
  const naive = given.variant === 'naive'
  const ok = given.requestsPerSecond * 5
  const used = { cpuSeconds: 1, connections: naive ? ok : 0, commands: ok * (naive ? 9 : 5) }
  return {
    seconds: 5,
    sent: ok,
    answered: ok,
    ok,
    errors: {},
    latency: {
      ...{ p50: 3, p75: 4, p90: 5, p95: 7, p975: 9 },
      ...{ p99: naive ? 186.4 : 19.5, p999: 200, max: 210, mean: 4 },
    },
    bytes: { sent: ok * 290, received: ok * 230 },
    generator: { cpuSeconds: 2, utilization: 0.6 },
    redis: { ...used, mainThreadCpuSeconds: 0.9, reads: ok },
    api: { ...used, residentBytes: 1e8, roundTrips: ok },
    elsewhere: 0.02,
    perRequest: {
      connections: naive ? 1 : 0,
      commands: naive ? 9 : 5,
      roundTrips: naive ? 5 : 1,
      generatorCpuMicros: 25.4,
      apiCpuMicros: naive ? 390 : 61.2,
      redisCpuMicros: naive ? 282 : 18.31,
      bytesSent: 290,
      bytesReceived: 230,
    },
    ...given,
  }
}
