import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { experiments } from '../src/experiments/index.ts'
import { runLoad } from './support/run.ts'

async function load(...args: string[]) {
  const program = await runLoad({ state: await temporaryFolder(), args, until: /./ })
  const { code } = await program.exited
  return { code, lines: program.output }
}

test('--help lists every command on its own line, and has examples', async () => {
  const { code, lines } = await load('--help')
  expect(code).toBe(0)
  const names = experiments.map(({ name }) => name.replace(/ .*/, ''))
  const commands = [...new Set(names), 'compare', 'document']
  for (const command of [...commands, 'report', 'relay']) {
    const line = lines.find((each) => each.startsWith(`  ${command} `)) ?? ''
    expect(line, command).toMatch(/^ {2}[\w-]+ +\w.{15}/)
    expect(line.length).toBeLessThanOrEqual(100)
  }
  const examples = lines.slice(lines.indexOf('Examples:') + 1).filter((line) => line !== '')
  expect(examples.length).toBeGreaterThan(2)
  for (const line of examples) expect(line).toMatch(/^ {2}npm run load/)
})

test('rejects an unknown command', async () => {
  const { code, lines } = await load('htpp', '--quick')
  expect(code).toBe(1)
  expect(lines.join('\n')).toMatch(/unknown command 'htpp'.*\n.*http/)
})
