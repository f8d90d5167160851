import { spawnSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { credentialsOf, unixUrl, urlFor } from '@onetrip/stack/address.ts'
import { apiUrl } from '@onetrip/stack/api.ts'
import { repository } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { type Program, startProgram } from '@onetrip/stack/program.ts'
import { startRedis } from '@onetrip/stack/start-redis.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { startApiProcess } from '../../apps/api/test/api-process.ts'
import { Client } from './client.ts'
import { dashboardQueries } from './dashboard.ts'

const installed = ['prometheus', 'prometheus-redis-exporter'].every(
  (program) => spawnSync(program, ['--version']).status === 0,
)

interface Rule {
  name: string
  query: string
  type: 'alerting' | 'recording'
  health: string
  lastError?: string
  state?: 'inactive' | 'pending' | 'firing'
}

/**
 * Needs Prometheus and redis_exporter (Debian: apt install prometheus prometheus-redis-exporter), which are older than
 * the images in docker-compose.yml.
 */
describe.skipIf(!installed)('a real Prometheus with our configuration, on real APIs', () => {
  let redis: Program
  let prometheus: string
  const programs: Program[] = []
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'onetrip-prometheus-'))
    const socket = join(directory, 'redis.sock')
    const secrets = join(directory, 'secrets')
    redis = await startRedis({ socket, directory, secrets })
    const [port = 0, pooled = 0, naive = 0, exporter = 0] = await freePorts(4)
    const REDIS_URL = urlFor('api', unixUrl(socket), secrets)
    const start = (strategy: 'batch' | 'naive', port: number) =>
      startApiProcess({ STRATEGY: strategy, PORT: String(port), REDIS_URL })
    const { username, password } = credentialsOf('exporter', secrets)
    programs.push(
      ...(await Promise.all([
        start('batch', pooled),
        start('naive', naive),
        startProgram({
          name: 'redis_exporter',
          command: 'prometheus-redis-exporter',
          args: [
            '--redis.addr=',
            `--redis.user=${username}`,
            '--config-command=-',
            `--web.listen-address=127.0.0.1:${exporter}`,
          ],
          env: { ...process.env, REDIS_PASSWORD: password },
          ready: /Providing metrics/,
        }),
      ])),
    )
    await copyFile(join(repository, 'docker/prometheus/rules.yml'), join(directory, 'rules.yml'))
    const config = parse(
      await readFile(join(repository, 'docker/prometheus/prometheus.yml'), 'utf8'),
    )
    // Shorter intervals make the test faster.
    config.global = { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' }
    // Docker's DNS does not exist here.
    const targets: Record<string, object> = {
      api: { targets: [`127.0.0.1:${pooled}`] },
      'api-naive': { targets: [`127.0.0.1:${naive}`] },
      redis: { targets: ['redis:6379'], labels: { __meta_dns_name: 'redis' } },
    }
    for (const job of config.scrape_configs) {
      delete job.dns_sd_configs
      const target = targets[job.job_name]
      job.static_configs = target ? [target] : []
    }
    const own = stringify(config)
      .replace('redis://$1:6379', `unix://${socket}`)
      .replace('redis-exporter:9121', `127.0.0.1:${exporter}`)
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

  test('finds both variants and Redis, and evaluates every rule', async () => {
    await expect
      .poll(async () => (await query('up')).map(({ metric, value }) => [metric.job, value[1]]))
      .toEqual(
        expect.arrayContaining([
          ['api', '1'],
          ['api-naive', '1'],
          ['redis', '1'],
        ]),
      )
    await expect
      .poll(async () => (await query('redis_up')).map(({ metric, value }) => [metric, value[1]]))
      .toEqual([[{ __name__: 'redis_up', job: 'redis', instance: 'redis:6379' }, '1']])
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
    known.add('redis_master_link_up') // only for replicas
    known.add('redis_max_clients') // newer versions of redis_exporter
    known.add('redis_config_maxclients') // older versions, with CONFIG GET
    const expressions = [...dashboardQueries(), ...(await rules()).map(({ query }) => query)]
    const used = new Set(
      expressions.join('\n').match(/\b(onetrip|http|nodejs|process|redis)[_:]\w[\w:]*/g),
    )
    expect(used.size).toBeGreaterThan(30)
    expect([...used].filter((name) => !known.has(name))).toEqual([])
  })

  test('the user exporter has all permissions that redis_exporter needs', async () => {
    const calls = (state: string) => query(`redis_commands_${state}_total{cmd=~"info|slowlog.*"}`)
    await expect.poll(async () => (await calls('rejected_calls')).length).toBe(3)
    expect(await query('redis_commands_rejected_calls_total > 0')).toEqual([])
  })

  test('no alert fires until Redis is killed', async () => {
    const active = async () =>
      (await rules()).filter(({ type, state }) => type === 'alerting' && state !== 'inactive')
    expect((await active()).filter(({ state }) => state === 'firing')).toEqual([])
    redis.signal('SIGKILL')
    await expect.poll(async () => (await active()).map(({ name }) => name)).toContain('RedisDown')
  })
})
