import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { dashboardQueries } from './dashboard.ts'

interface Service {
  image: string
  environment?: Record<string, string>
}

const read = (path: string) => readFileSync(join(repository, path), 'utf8')
const guide = read('docs/containers.md')
const compose = read('docker-compose.yml')

const matches = (text: string, pattern: RegExp) =>
  [...new Set(Array.from(text.matchAll(pattern), ([, match = '']) => match))].sort()

test('the guide names every setting of docker-compose.yml', () => {
  const settings = matches(compose, /\$\{([A-Z_]+):-/g)
  expect(settings.length).toBeGreaterThan(10)
  expect(
    settings.filter((name) => !guide.includes(`\`${name}\``) && !guide.includes(`${name}=`)),
  ).toEqual([])
})

test('docker/password.yml and the monitoring cover every API and every Redis', () => {
  const services = parse(compose, { merge: true }).services as Record<string, Service>
  const ours = Object.keys(services).filter((name) => services[name]?.image === 'onetrip-demo')
  const apis = ours.filter((name) => name !== 'demo')
  expect(apis).toEqual(['api', 'api-naive', 'api-cluster'])
  expect(Object.keys(parse(read('docker/password.yml')).services).toSorted()).toEqual(
    ours.toSorted(),
  )
  const { scrape_configs: jobs } = parse(read('docker/prometheus/prometheus.yml'))
  expect(jobs.map(({ job_name }: { job_name: string }) => job_name)).toEqual([...apis, 'redis'])
  const servers = Object.keys(services).filter((name) =>
    /^onetrip-redis:/.test(services[name]?.image ?? ''),
  )
  expect(servers).toHaveLength(7)
  expect(jobs.at(-1).dns_sd_configs[0].names).toEqual(servers)
  expect(services.redis?.environment?.EXPORTED_SERVERS?.split(' ')).toEqual(
    servers.map((name) => `${name}:6379`),
  )
})

test('docs/operations.md describes exactly the metrics of Redis that alerts and dashboard use', () => {
  const used = [read('docker/prometheus/rules.yml'), ...dashboardQueries()].join('\n')
  expect(matches(read('docs/operations.md'), /`(redis_(?!exporter)\w+)`/g)).toEqual(
    matches(used, /(?<!:)\b(redis_(?!exporter)\w+)/g),
  )
})

test('docker-compose.yml and Dockerfiles use only features of Compose 1.29 and the classic builder', () => {
  expect(compose).not.toMatch(/^name:|^ +start_interval:|^secrets:/m)
  for (const path of ['apps/server-build', 'apps/api', 'apps/demo', 'load', 'docker/proxy']) {
    expect(read(`${path}/Dockerfile`)).not.toMatch(/^RUN --mount|^COPY .*--chmod/m)
  }
})

test('.dockerignore leaves every file that a Dockerfile copies', () => {
  const left = matches(read('.dockerignore'), /^!(.+)$/gm)
  for (const path of ['apps/server-build', 'apps/api', 'apps/demo', 'load']) {
    const copies = matches(read(`${path}/Dockerfile`), /^COPY (?!--from)(.+) \S+$/gm)
    // Patterns, which accept a missing file: docke[r]/extra-ca.pe[m].
    const sources = copies.flatMap((files) => files.replaceAll(/[[\]]/g, '').split(' '))
    expect(sources.length).toBeGreaterThan(3)
    expect(
      sources.filter((source) => !left.some((name) => `${source}/`.startsWith(`${name}/`))),
    ).toEqual([])
  }
})
