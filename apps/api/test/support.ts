import { createSessionStore, type StrategyName } from '@onetrip/session-store'
import type { FastifyInstance } from 'fastify'
import { onTestFinished } from 'vitest'
import { buildApp } from '../src/app.ts'
import { trustingAuthenticator } from '../src/authenticator.ts'

export const secret = 'a-secret-for-tests-a-secret-for-tests'

/** The whole application on this Redis, closed when the current test ends. */
export async function appForThisTest(
  socket: string,
  options: { strategy?: StrategyName; deadlineMs?: number } = {},
): Promise<FastifyInstance> {
  const store = createSessionStore({
    url: `unix://${socket}`,
    tokens: { secrets: [secret] },
    ...options,
  })
  await store.ready()
  const app = await buildApp({
    store,
    authenticator: trustingAuthenticator('test'),
    transport: 'unix',
    secureCookie: true,
  })
  onTestFinished(async () => {
    await app.close()
    await store.close()
  })
  return app
}

/** Logs in and returns the token. */
export async function login(app: FastifyInstance, user = 'ada'): Promise<string> {
  const answer = await app.inject({ method: 'POST', url: '/login', payload: { user } })
  return answer.json<{ token: string }>().token
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
