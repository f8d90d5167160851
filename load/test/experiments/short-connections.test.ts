import { Command } from 'commander'
import { expect, test } from 'vitest'
import { shortConnections } from '../../src/experiments/short-connections/short-connections.ts'

// core/documents.test.ts checks the reports of the published results.

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
