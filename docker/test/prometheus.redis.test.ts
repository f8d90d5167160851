import { spawnSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiUrl } from '@onetrip/stack/api.ts'
import { repository } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { type Program, startProgram } from '@onetrip/stack/program.ts'
import { type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApiProcess } from '../../apps/api/test/api-process.ts'
import { Client } from './client.ts'
import { dashboardQueries } from './dashboard.ts'

const installed = spawnSync('prometheus', ['--version']).status === 0

interface Rule {
  name: string
  query: string
  type: 'alerting' | 'recording'
  health: string
  lastError?: string
  state?: 'inactive' | 'pending' | 'firing'
}

/** Needs Prometheus (Debian: apt install prometheus), which is older than the image in docker-compose.yml. */
describe.skipIf(!installed)('a real Prometheus with our configuration, on real APIs', () => {
  let redis: TestRedis
  let prometheus: string
  const programs: Program[] = []
  let directory: string

  beforeAll(async () => {
    redis = await testRedis()
    directory = await mkdtemp(join(tmpdir(), 'onetrip-prometheus-'))
    const [port = 0, pooled = 0, naive = 0] = await freePorts(3)
    const start = (strategy: 'batch' | 'naive', port: number) =>
      startApiProcess({
        STRATEGY: strategy,
        PORT: String(port),
        REDIS_URL: `unix://${redis.socket}`,
        REDIS_INFO_INTERVAL_SECONDS: '1',
      })
    programs.push(...(await Promise.all([start('batch', pooled), start('naive', naive)])))
    await copyFile(join(repository, 'docker/prometheus/rules.yml'), join(directory, 'rules.yml'))
    const config = await readFile(join(repository, 'docker/prometheus/prometheus.yml'), 'utf8')
    // Docker's DNS does not exist here. Shorter intervals make the test faster.
    const targets = [pooled, naive]
    const own = config
      .replaceAll(/dns_sd_configs:(\n {6}.*)+/g, () => {
        return `static_configs: [{ targets: ['127.0.0.1:${targets.shift()}'] }]`
      })
      .replaceAll(/(interval|timeout): \ds/g, '$1: 1s')
    expect(targets).toEqual([])
    await writeFile(join(directory, 'prometheus.yml'), own)
    prometheus = `http://127.0.0.1:${port}`
    programs.push(
      await startProgram({
        name: 'Prometheus',
        command: 'prometheus',
        args: [
          `--config.file=${join(directory, 'prometheus.yml')}`,
          `--storage.tsdb.path=${join(directory, 'data')}`,
          `--web.listen-address=127.0.0.1:${port}`,
        ],
        ready: /Server is ready to receive web requests/,
      }),
    )
    for (const url of [pooled, naive].map((port) => apiUrl('127.0.0.1', port))) {
      const client = await Client.logIn(url, 'ada')
      expect(await client.view('book')).toMatchObject({ status: 200 })
    }
  })

  afterAll(async () => {
    await Promise.all(programs.map((program) => program.stop()))
    await redis.stop()
    await rm(directory, { recursive: true, force: true })
  })

  async function ask<Data>(path: string): Promise<Data> {
    const answer = await fetch(`${prometheus}/api/v1/${path}`)
    const { data, error } = (await answer.json()) as { data: Data; error?: string }
    if (error !== undefined) throw new Error(`${path}: ${error}`)
    return data
  }

  const query = async (expr: string) =>
    (
      await ask<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(expr)}`,
      )
    ).result

  const rules = async () =>
    (await ask<{ groups: { rules: Rule[] }[] }>('rules')).groups.flatMap(({ rules }) => rules)

  test('finds both variants and evaluates every rule', async () => {
    await expect
      .poll(async () => (await query('up')).map(({ metric, value }) => [metric.job, value[1]]))
      .toEqual(
        expect.arrayContaining([
          ['api', '1'],
          ['api-naive', '1'],
        ]),
      )
    await expect
      .poll(async () => (await rules()).filter(({ health }) => health !== 'ok'))
      .toEqual([])
  })

  test('every query of the dashboard is valid, and returns data unless it needs an error', async () => {
    // These have no data while there are no errors.
    const empty = /ALERTS|> 0\)?$|status=~"5/
    const expected = dashboardQueries().filter((expr) => !empty.test(expr))
    expect(expected.length).toBeGreaterThan(20)
    for (const expr of dashboardQueries()) await query(expr)
    await expect
      .poll(async () => {
        const counts = await Promise.all(expected.map(async (expr) => (await query(expr)).length))
        return expected.filter((_, index) => counts[index] === 0)
      })
      .toEqual([])
  })

  test('rules and queries use only metrics that exist', async () => {
    const known = new Set(await ask<string[]>('label/__name__/values'))
    known.add('onetrip_worker_restarts_total') // only with WORKERS
    known.add('onetrip_redis_replication_link_up') // only for replicas
    const expressions = [...dashboardQueries(), ...(await rules()).map(({ query }) => query)]
    const used = new Set(
      expressions.join('\n').match(/\b(onetrip|http|nodejs|process)[_:]\w[\w:]*/g),
    )
    expect(used.size).toBeGreaterThan(30)
    expect([...used].filter((name) => !known.has(name))).toEqual([])
  })

  test('no alert fires until Redis is killed', async () => {
    const active = async () =>
      (await rules()).filter(({ type, state }) => type === 'alerting' && state !== 'inactive')
    expect((await active()).filter(({ state }) => state === 'firing')).toEqual([])
    redis.program.signal('SIGKILL')
    await expect.poll(async () => (await active()).map(({ name }) => name)).toContain('RedisDown')
  })
})
