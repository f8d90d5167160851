import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

interface RuleTest {
  alert_rule_test?: { alertname: string; exp_alerts?: object[] }[]
}

const folder = join(repository, 'docker/prometheus')
const promtool = (...args: string[]) =>
  spawnSync('promtool', args, { cwd: folder, encoding: 'utf8', timeout: 20_000 })

const installed = promtool('--version').status === 0

/** Needs promtool (Debian: apt install prometheus). */
describe.skipIf(!installed)('promtool', () => {
  test.each([
    ['check', 'config', 'prometheus.yml'],
    ['check', 'rules', 'rules.yml'],
    ['test', 'rules', 'rules.test.yml'],
  ])('%s %s %s', (...args) => {
    const { status, stdout, stderr } = promtool(...args)
    expect(`${stdout}${stderr}`).toContain('SUCCESS')
    expect(status, stderr).toBe(0)
  })
})

test('in docker-compose.yml, mounted paths exist and third-party images are pinned', () => {
  const compose = readFileSync(join(repository, 'docker-compose.yml'), 'utf8')
  const all = (pattern: RegExp) => Array.from(compose.matchAll(pattern), ([, match = '']) => match)
  const mounts = all(/^ +- (\.\/[^:]+):/gm)
  expect(mounts.length).toBeGreaterThan(2)
  expect(mounts.filter((path) => !existsSync(join(repository, path)))).toEqual([])
  const foreign = all(/^ +image: (.+)/gm).filter((image) => !image.startsWith('onetrip-'))
  expect(foreign).toHaveLength(3)
  for (const image of foreign) expect(image).toMatch(/:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$/)
})

test('every alert has a test in which it fires, and is described in docs/operations.md', () => {
  const read = (path: string) => readFileSync(join(repository, path), 'utf8')
  const { groups } = parse(read('docker/prometheus/rules.yml'))
  const alerts = groups.flatMap(({ rules }: { rules: { alert?: string }[] }) =>
    rules.flatMap(({ alert }) => alert ?? []),
  )
  expect(alerts.length).toBeGreaterThan(10)
  const { tests } = parse(read('docker/prometheus/rules.test.yml')) as { tests: RuleTest[] }
  const fired = tests
    .flatMap(({ alert_rule_test: cases = [] }) => cases)
    .flatMap(({ alertname, exp_alerts: expected = [] }) => (expected.length > 0 ? alertname : []))
  expect(fired).toEqual(expect.arrayContaining(alerts))
  const guide = read('docs/operations.md')
  for (const alert of alerts) expect(guide).toContain(`\`${alert}\``)
})
