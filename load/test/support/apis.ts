import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { apiUrl, startApi } from '@onetrip/stack/api.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { type Variant, variantProgram } from '../../src/variants.ts'

const usersFile = fileURLToPath(new URL('../../../apps/server-build/users.acl', import.meta.url))

interface Answer {
  status: number
  body: Record<string, unknown>
}

/** A variant of the API, and what a client asks it. */
export interface Api {
  program: Program
  url: string
  login(user: string): Promise<string>
  logout(token: string): Promise<void>
  view(token: string, item: string): Promise<Answer>
  get(path: string, token?: string): Promise<Answer>
}

/**
 * A Redis for all tests of a file, emptied before each of them, and variants of the API on it, which
 * have the rights that a stack's have. To be called at the file's top level.
 */
export function apisOfThisFile() {
  let server: TestRedis
  let redis: Redis
  let redisUrl: string

  beforeAll(async () => {
    const [port = 0] = await freePorts(1)
    server = await testRedis({ port }) // valkey-glide knows no Unix sockets
    redis = new Redis(server.socket)
    redisUrl = `redis://api:${await addApiUser(redis)}@127.0.0.1:${port}`
  })

  beforeEach(async () => {
    await redis.flushall() // a server of this file's own
  })

  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })

  return {
    get redis() {
      return redis
    },

    /** One for all tests of a `describe`, which ends well. */
    forThese(variant: Variant): { readonly api: Api } {
      let api: Api | undefined
      beforeAll(async () => {
        api = await start(variant, redisUrl)
      })
      afterAll(async () => {
        expect(await api?.program.stop()).toEqual({ code: 0, signal: null })
      })
      return {
        get api() {
          if (!api) throw new Error('it runs while tests do')
          return api
        },
      }
    },

    /** One that is stopped when the current test ends. */
    async forThisTest(variant: Variant): Promise<Api> {
      const api = await start(variant, redisUrl)
      onTestFinished(async () => void (await api.program.stop()))
      return api
    },

    /** What Redis has executed so far, this question not included. */
    async commands(): Promise<number> {
      return Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
    },
  }
}

/** Makes the API's user, as in a stack. Returns the password. */
async function addApiUser(redis: Redis): Promise<string> {
  const password = 'a-password-for-tests'
  const hash = createHash('sha256').update(password).digest('hex')
  const [, rules = ''] = /^user api (.*(?:\n .*)*)/m.exec(await readFile(usersFile, 'utf8')) ?? []
  const lines = rules.replace('@API_PASSWORD_SHA256@', hash).split('\n')
  const words = lines.filter((line) => !line.startsWith(' # ')).flatMap((line) => line.split(' '))
  await redis.call('ACL', 'SETUSER', 'api', ...words.filter((word) => word !== ''))
  return password
}

async function start(variant: Variant, redisUrl: string): Promise<Api> {
  const [port = 0] = await freePorts(1)
  const sessionSecret = 'a-secret-for-tests-a-secret-for-tests'
  const program = await startApi({
    ...variantProgram(variant),
    host: '127.0.0.1',
    port,
    redis: { url: redisUrl },
    sessionSecret,
  })
  const ask = async (method: string, path: string, token: string, body?: object) => {
    const answer = await fetch(`${apiUrl('127.0.0.1', port)}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text && JSON.parse(text) }
  }
  return {
    program,
    url: apiUrl('127.0.0.1', port),
    login: async (user) => String((await ask('POST', '/login', '', { user })).body.token),
    logout: async (token) => void (await ask('POST', '/logout', token, {})),
    view: (token, item) => ask('POST', '/views', token, { item }),
    get: (path, token = '') => ask('GET', path, token),
  }
}
