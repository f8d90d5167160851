import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { Client, countOf } from './client.ts'
import { outputOf } from './command.ts'
import { createStack, type Stack } from './stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await createStack(inject('compose'))
})

afterAll(async () => {
  expect(await stack.down()).toEqual([])
})

describe.each(['stock', 'patched'])('with the %s Redis', (build) => {
  test('starts healthy, with this build', async () => {
    await stack.up({ REDIS_BUILD: build })
    expect(await stack.redisCli('redis', 'operator', 'INFO', 'server')).toContain(
      `onetrip_build:${build}`,
    )
  })

  test('logins and views work through both APIs, and each accepts the tokens of the other', async () => {
    const pooled = await Client.logIn(stack.urls.pooled, `user-of-${build}`)
    const naive = pooled.at(stack.urls.naive)
    expect(await pooled.view(`tea-${build}`)).toMatchObject({ status: 200, body: { views: 1 } })
    expect(await naive.view(`tea-${build}`)).toMatchObject({ status: 200, body: { views: 2 } })
    expect(await naive.view('book')).toMatchObject({ status: 200 })
    expect(await pooled.views()).toEqual(['book', `tea-${build}`])
    expect(await countOf(stack.urls.naive, `tea-${build}`)).toBe(2)
  })
})

describe('secrets', () => {
  test('are generated at the first start, and are not in any environment or image', async () => {
    const script = 'for file in /secrets/*/*-*; do cat "$file"; echo; done'
    const secrets = (await stack.exec('redis', script)).stdout.trim().split(/\s+/)
    expect(secrets).toHaveLength(4)
    for (const secret of secrets) expect(secret).toMatch(/^[\w-]{43}$/)
    const containers = JSON.stringify(await stack.containers())
    const names = ['onetrip-redis:patched', 'onetrip-demo']
    const images = await outputOf(['docker', 'image', 'inspect', ...names])
    for (const secret of secrets) expect(containers + images).not.toContain(secret)
  })

  test('an API has its own secrets but not those of the operator', async () => {
    expect((await stack.exec('api', 'ls /secrets')).stdout.trim()).toBe('api')
    expect((await stack.exec('api', 'echo x >/secrets/api/x')).code).not.toBe(0)
  })

  test('the user api cannot run FLUSHALL, and Redis requires a password', async () => {
    expect(await stack.redisCli('redis', 'api', 'FLUSHALL')).toContain('NOPERM')
    expect((await stack.exec('redis', 'redis-cli PING')).stdout).toContain('NOAUTH')
  })
})

describe('hardening', () => {
  test('no process runs as root or can gain privileges', async () => {
    const containers = await stack.containers()
    expect(containers).toHaveLength(5)
    for (const { Id, Name, HostConfig } of containers) {
      const processes = await outputOf(['docker', 'top', Id, '-eo', 'uid,pid,comm'])
      const uids = processes.match(/^ *\d+/gm)?.map(Number) ?? []
      expect(uids.length, Name).toBeGreaterThan(1)
      expect(Math.min(...uids), `${Name}\n${processes}`).toBeGreaterThan(0)
      expect(HostConfig).toMatchObject({ ReadonlyRootfs: true, Init: true, CapDrop: ['ALL'] })
      expect(HostConfig.Memory).toBeGreaterThan(0)
      const status = await outputOf(['docker', 'exec', Id, 'cat', '/proc/self/status'])
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
      expect(status).toMatch(/^CapEff:\s+0+$/m)
    }
  })

  test('Redis gets the backlog and the descriptors of redis.conf', async () => {
    const { output } = await stack.try(['logs', 'redis'])
    expect(output).not.toMatch(/backlog|maxclients/)
    expect(await stack.redisCli('redis', 'operator', 'CONFIG', 'GET', 'maxclients')).toContain(
      '10000',
    )
  })
})

describe('network exposure', () => {
  test('only the proxy publishes ports, on loopback', async () => {
    const containers = await stack.containers()
    expect(containers).toHaveLength(5)
    for (const { Name, NetworkSettings } of containers) {
      const published = Object.values(NetworkSettings.Ports).flatMap((ports) => ports ?? [])
      expect(published.length > 0, Name).toBe(Name.includes('proxy'))
      for (const { HostIp } of published) expect(HostIp).toBe('127.0.0.1')
    }
  })

  test('the proxy has the metrics that the page links to, and no other', async () => {
    const { pooled, naive } = stack.urls
    expect((await fetch(`${pooled}/metrics`)).status).toBe(200)
    for (const path of ['/metrics', '/%6detrics', '/metrics?all', '//metrics']) {
      const answer = await fetch(`${naive}${path}`)
      expect(answer.status, path).toBe(404)
      expect(await answer.json()).toMatchObject({ code: 'API_NOT_FOUND' })
    }
  })

  test('the proxy cannot reach Redis, and only the proxy is in a network with external access', async () => {
    const connecting = (to: string) => stack.exec('proxy', `bash -c "exec 3<>/dev/tcp/${to}"`)
    expect((await connecting('api/3000')).code).toBe(0)
    expect((await connecting('redis/6379')).code).not.toBe(0)
    for (const { Name, NetworkSettings } of await stack.containers()) {
      const networks = Object.keys(NetworkSettings.Networks)
      const described = await outputOf(['docker', 'network', 'inspect', ...networks])
      const internal = (JSON.parse(described) as { Internal: boolean }[]).map((one) => one.Internal)
      expect(internal.every(Boolean), Name).toBe(!Name.includes('proxy'))
    }
  })
})

test('race and wire of the page work, and have no command of the terminal', async () => {
  const url = `${stack.urls.pooled}/demo`
  const post = (path: string, body: object) =>
    fetch(`${url}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const lanes = ['naive', 'batch']
  const traced = await post('wire', { lanes, distanceMs: 1 })
  expect(await traced.json()).toMatchObject({ lanes: lanes.map((strategy) => ({ strategy })) })
  const events = (await fetch(`${url}/race/events`)).body
  expect((await post('race', { lanes, connections: 16, distanceMs: 0 })).status).toBe(202)
  let text = ''
  for await (const chunk of events?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (/^event: (done|failed)\ndata: .*\n\n/m.test(text)) break
  }
  const [, name, data = ''] = /^event: (done|failed)\ndata: (.*)$/m.exec(text) ?? []
  expect({ name, ...JSON.parse(data) }).toMatchObject({ name: 'done', command: null })
})

test('the load service prints its table, writes its results to the volume, and restarts nothing', async () => {
  await stack.up({ REDIS_IO_THREADS: '3' })
  const startedAt = async () =>
    (await stack.containers()).map(({ State }) => State.StartedAt).sort()
  const before = await startedAt()
  const options = ['--duration', '1', '--rounds', '1', '--warmup', '0.5', '--connections', '8']
  const printed = await stack.compose(['run', '--rm', '-T', 'load', ...options])
  expect(printed).toMatch(/^variant +requests\/s/m)
  expect(printed).toContain('All samples are in /results/http.json')
  expect(printed).toMatch(/batch answered [\d.,]+ times as many requests per second as naive/)
  const popular = await fetch(`${stack.urls.pooled}/items/popular?limit=100`)
  expect(await popular.text(), 'it removes the counts of its items').not.toContain('load-item')
  const printing = ['--rm', '-T', '--no-deps', '--entrypoint', 'cat', 'load']
  const json = await stack.compose(['run', ...printing, '/results/http.json'])
  const { software, samples } = JSON.parse(json)
  expect(software.Stack).toBe('--url')
  expect(samples).toMatchObject([
    { case: { variant: 'naive' }, values: { requestsPerSecond: expect.any(Number) } },
    { case: { variant: 'batch' }, values: { requestsPerSecond: expect.any(Number) } },
  ])
  for (const sample of samples) expect(sample).not.toHaveProperty('errors')
  expect(await startedAt()).toEqual(before)
  expect(await stack.redisCli('redis', 'operator', 'CONFIG', 'GET', 'io-threads')).toContain('3')
  const report = await fetch(`${stack.urls.pooled}/report`)
  expect(await report.text()).toContain('Page views over HTTP, at full speed')
})

test('the login rate limit counts by the address that the proxy sees, across all containers', async () => {
  await stack.up({ LOGIN_LIMIT_PER_ADDRESS: '4' }, '--scale', 'api=2')
  const statuses: number[] = []
  for (let n = 1; n <= 12; n += 1) {
    const { status } = await fetch(`${stack.urls.pooled}/login`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': `192.0.2.${n}`,
        connection: 'close', // so that both containers get requests
      },
      body: JSON.stringify({ user: `by-address-${n}` }),
    })
    statuses.push(status)
  }
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  // 4 per window; a second window may begin meanwhile.
  expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(8)

  // The proxy itself has another address, even if it sends the rejected one in X-Forwarded-For.
  const { Id, NetworkSettings } = await stack.container('proxy')
  const gateways = Object.values(NetworkSettings.Networks).map(({ Gateway }) => Gateway)
  const request = [
    'POST /login HTTP/1.0',
    'Content-Type: application/json',
    'Content-Length: 16',
    `X-Forwarded-For: ${gateways.filter(Boolean).join(', ')}`,
    '',
    '{"user":"proxy"}',
  ].join('\r\n')
  const script =
    'exec 3<>/dev/tcp/127.0.0.1/3000; printf %s "$1" >&3; read -r status <&3; echo "$status"'
  const answer = await stack.inContainer(Id, ['bash', '-c', script, 'bash', request])
  expect(answer).toMatch(/^HTTP\/1\.[01] 200 /)
})

test('docker compose stop ends the APIs and Redis gracefully', async () => {
  await stack.compose(['stop'])
  const ends = (await stack.containers()).map(({ Name, State }) => [Name, State.ExitCode])
  expect(ends.filter(([, code]) => code !== 0)).toEqual([])
})
