import { tableMarkdown } from '../../src/reporting/markdown.ts'
import { counted, figure } from '../../src/rounds/figures.ts'
import type { ResourceName } from './readings.ts'
import type { Soaked } from './run.ts'

/** The tables of docs/measurements/soak.md, and all discrepancies. */
export function reportOf(soaked: Soaked): string {
  const { seconds, injected, discrepancies } = soaked
  return [
    `${(seconds / 60).toFixed(1)} minutes, ${counted(injected.length, 'fault')}`,
    trafficTable(soaked),
    faultTable(soaked),
    resourceTable(soaked),
    ...discrepancies,
  ].join('\n\n')
}

const whole = (count: number) => count.toLocaleString('en-US')

function trafficTable({ counts, lost, extra, discrepancies, latencies, errors }: Soaked): string {
  const cells = {
    requests: whole(counts.requests),
    'views acknowledged': whole(counts.acknowledged),
    'outcome unknown': whole(counts.unknown),
    'not written': whole(counts.notWritten),
    lost: whole(lost),
    'counted twice': whole(extra),
    'wrong records': whole(discrepancies.length),
    'p50 ms': figure(latencies.p50 ?? Number.NaN),
    'p99 ms': figure(latencies.p99 ?? Number.NaN),
    'not sent': whole(counts.notSent),
    errors: whole(Object.values(errors).reduce((sum, count) => sum + count, 0)),
  }
  return tableMarkdown({
    caption: '',
    head: Object.keys(cells),
    rows: [Object.values(cells)],
    texts: [],
  })
}

function faultTable({ injected }: Soaked): string {
  const sumOf = (all: Soaked['injected'], name: 'unknown' | 'notWritten') =>
    whole(all.reduce((sum, one) => sum + one[name], 0))
  return tableMarkdown({
    caption: '',
    head: ['fault', 'times', 'longest gap s', 'outcome unknown', 'not written', 'not recovered'],
    rows: [...Map.groupBy(injected, ({ fault }) => fault)].map(([fault, all]) => [
      fault,
      String(all.length),
      (Math.max(...all.map(({ gapMs }) => gapMs)) / 1_000).toFixed(2),
      sumOf(all, 'unknown'),
      sumOf(all, 'notWritten'),
      String(all.filter(({ recovered }) => !recovered).length),
    ]),
    texts: [0],
  })
}

const MB = 1e6
const isBytes = (resource: ResourceName) => /heap|RSS|memory/.test(resource)

function amount(resource: ResourceName, value: number | null): string {
  if (value === null) return '-'
  return isBytes(resource) ? `${(value / MB).toFixed(2)} MB` : value.toFixed(1)
}

function resourceTable({ verdicts }: Soaked): string {
  return tableMarkdown({
    caption: '',
    head: ['resource', 'start', 'end', 'growth', 'may grow by', 'verdict'],
    rows: verdicts.map(({ resource, start, end, bound, isSteady }) => [
      resource,
      ...[start, end, start === null || end === null ? null : end - start, bound].map((value) =>
        amount(resource, value),
      ),
      isSteady ? 'steady' : start === null ? 'too few readings' : 'not steady',
    ]),
    texts: [0, 5],
  })
}
