import { SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import { comparedStrategies } from '../src/compared-strategies.ts'
import type { Plan } from '../src/experiments/clients/plan.ts'
import { run } from './support/run.ts'

const DEADLINE_MS = 10_000

/** Also verifies the signature of the token. */
async function recordView({ secret, sessions }: Plan, sending: Partial<SessionStoreOptions>) {
  const store = new SessionStore({
    ...sending,
    tokens: { secrets: [secret] },
    deadlineMs: DEADLINE_MS,
    maxInFlight: Math.max(1_000, sessions.length), // the default of 1,000 refuses 1,024 callers
    janitor: 'elsewhere', // its commands would be measured, too
  })
  await store.ready()
  return async ({ token }: { token: string }, item: string) =>
    (await store.recordView(token, item))?.user
}

await run({
  batch: (plan) => recordView(plan, { redis: plan.url }),
  'pipeline-framed': (plan) => {
    const target = { redis: plan.url, poolSize: 1, deadlineMs: DEADLINE_MS }
    const sender = comparedStrategies['pipeline-framed']?.(target)
    return recordView(plan, sender ? { sender } : {})
  },
})
