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

/** A running variant of the API, and its routes. */
export interface Api {
  program: Program
  url: string
  login(user: string): Promise<string>
  logout(token: string): Promise<void>
  view(token: string, item: string): Promise<Answer>
  get(path: string, token?: string): Promise<Answer>
}

/**
 * A Redis for all tests of a file, which is emptied before each test, and variants of the API with the permissions
 * that they have in a stack. Must be called at the top level of the file.
 */
export function apisOfThisFile() {
  let server: TestRedis
  let redis: Redis
  let redisUrl: string

  beforeAll(async () => {
    const [port = 0] = await freePorts(1)
    server = await testRedis({ port }) // valkey-glide does not support Unix sockets
    redis = new Redis(server.socket)
    redisUrl = `redis://api:${await addApiUser(redis)}@127.0.0.1:${port}`
  })

  beforeEach(async () => {
    await redis.flushall() // only this file uses the server
  })

  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })

  return {
    get redis() {
      return redis
    },

    /** An API for all tests of a `describe`. It must exit with code 0. */
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
          if (!api) throw new Error('the API runs only during tests')
          return api
        },
      }
    },

    /** An API that is stopped at the end of the current test. */
    async forThisTest(variant: Variant): Promise<Api> {
      const api = await start(variant, redisUrl)
      onTestFinished(async () => void (await api.program.stop()))
      return api
    },

    /** The number of commands that Redis has executed, without this INFO. */
    async commands(): Promise<number> {
      return Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
    },
  }
}

/** Creates the API's Redis user of a stack. Returns the password. */
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
    redis: redisUrl,
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
