import { Command } from 'commander'
import { expect, test } from 'vitest'
import { Rows } from '../../src/experiment/rows.ts'
import { shortConnections } from '../../src/experiments/short-connections/short-connections.ts'

const sample = (build: string, idle: number, round: number, mainCpuMicros: number) => ({
  case: { load: 'short', transport: 'tcp', threads: 1, idle, build },
  round,
  values: { mainCpuMicros, systemCalls: build === 'stock' ? 13.2 : 6.24 },
})

test('builds are compared with stock in the same round, with the same idle connections', () => {
  const samples = [
    sample('stock', 0, 1, 20),
    sample('patched', 0, 1, 10),
    sample('stock', 0, 2, 40),
    sample('patched', 0, 2, 30),
    sample('stock', 1_000, 1, 20),
    sample('patched', 1_000, 1, 12),
  ]
  // 0.5 and 0.75 with 0 idle connections, 0.6 with 1,000
  expect(shortConnections.claims(Rows.of(shortConnections, samples), {} as never)).toEqual([
    'On the main thread, a short connection (patched) takes 0.60 to 0.61 times the CPU time of stock.',
  ])
})

test('the table of patches has a line for each build', () => {
  const withThreads = (threads: number, factor: number) =>
    ['stock', 'patched@0002', 'patched@0005'].map((build, index) => {
      const one = sample(build, 0, 1, (20 - index) * factor)
      return { ...one, case: { ...one.case, threads } }
    })
  const tableOf = (samples: ReturnType<typeof withThreads>) => {
    const rows = Rows.of(shortConnections, samples)
    const result = { options: { connections: 50 } } as never
    return shortConnections.sections(rows, result)[0]?.tables[0]
  }
  const both = tableOf([...withThreads(1, 1), ...withThreads(2, 0.5)])
  expect(both?.head.slice(0, 3)).toEqual(['build', 'its last patch', 'main thread CPU µs'])
  expect(both?.rows).toEqual([
    ['stock', '', '20.0', '1', '1', '13.2', '10.0', '1', '1', '13.2'],
    [
      'patched@0002',
      'inherit socket options from the listener',
      '19.0',
      '0.95',
      '-',
      '6.24',
      '9.50',
      '0.95',
      '-',
      '6.24',
    ],
    [
      'patched@0005',
      'close client sockets in the background',
      '18.0',
      '0.90',
      '-',
      '6.24',
      '9.00',
      '0.90',
      '-',
      '6.24',
    ],
  ])
  // With several numbers of idle connections, or without builds such as patched@0002, there is no such table.
  const beside = sample('patched@0002', 1_000, 1, 20)
  const usual = [[...withThreads(1, 1), beside], withThreads(1, 1).slice(0, 1)].map(tableOf)
  for (const table of usual) expect(table?.head).not.toContain('its last patch')
})

test('a claim has the share of CPU time for the search of the client list', () => {
  const profiled = (build: string, round: number, profile: Record<string, number>) => ({
    ...sample(build, 10_000, round, 20),
    details: { profile },
  })
  const samples = [
    profiled('baseline', 1, { kernel: 0.5, listSearchKey: 0.3, zfree: 0.04, zmalloc: 0.001 }),
    profiled('baseline', 2, { kernel: 0.4, listSearchKey: 0.5, zfree: 0.02 }),
    profiled('stock', 1, { kernel: 0.75, zfree: 0.03, zmalloc: 0.025 }),
  ]
  const rows = Rows.of(shortConnections, samples)
  expect(shortConnections.claims(rows, {} as never)).toContain(
    "listSearchKey takes 40.0 % of the main thread's CPU time (TCP, baseline, beside 10,000 idle).",
  )
  const sections = shortConnections.sections(rows, { options: { connections: 50 } } as never)
  expect(sections.at(-1)?.tables[0]).toMatchObject({
    head: ['build', 'kernel', 'listSearchKey', 'other functions'],
    rows: [
      ['baseline', '45.0 %', '40.0 %', 'zfree 3.00 %'],
      ['stock', '75.0 %', '0.00 %', 'zfree 3.00 %, zmalloc 2.50 %'],
    ],
  })
})

function optionsOf(...args: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  shortConnections.configure(command)
  return command.parse(args, { from: 'user' }).opts<{ idle: unknown; builds: unknown }>()
}

test('--builds accepts builds with the first patches of the series', () => {
  const builds = (text: string) => optionsOf('--builds', text).builds
  expect(builds('stock, patched@0005,patched')).toEqual(['stock', 'patched@0005', 'patched'])
  expect(() => builds('stock,patched@5')).toThrow('Allowed choices are patched, stock, baseline.')
  expect(() => builds('patched@0005,patched@0005')).toThrow('only once')
})

test('--idle accepts numbers and "most", without duplicates', () => {
  const idle = (text: string) => optionsOf('--idle', text).idle
  expect(idle('0, most,1000')).toEqual([0, 'most', 1_000])
  expect(() => idle('banana')).toThrow('It must be a whole number from 0 to 1000000.')
  expect(() => idle('7,007')).toThrow('only once')
})
