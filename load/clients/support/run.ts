import { createInterface } from 'node:readline'
import { callFor, percentilesOf, warmUp } from '../../src/drivers/redis/callers.ts'
import type { Plan, Session } from '../../src/experiments/clients/plan.ts'

/** Records a page view. Resolves with the user of the session. */
export type View = (session: Session, item: string) => Promise<unknown>

/**
 * Runs the client that the command line names. Each line of standard input starts the next step: connect and warm up,
 * measure, report. A line of JSON ends each step; then the process waits, so that its CPU time can be read.
 */
export async function run(
  clients: Readonly<Record<string, (plan: Plan) => View | Promise<View>>>,
): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const reply = (values: object) => console.log(JSON.stringify(values))

  const plan: Plan = JSON.parse((await lines.next()).value ?? '')
  const { sessions, items } = plan
  const view = await clients[process.argv[2] ?? '']?.(plan)
  if (!view) throw new Error(`name one of ${Object.keys(clients).join(', ')}`)
  const callers = sessions.map((session, index) => {
    let at = Math.floor((index * items.length) / sessions.length)
    return async () => {
      const found = await view(session, items[at++ % items.length] ?? '')
      if (found !== session.user) throw new Error(`the user of the session is ${found}`)
    }
  })
  const views = await warmUp(callers, { seconds: plan.warmUp, isLong: plan.untilSteady })
  reply({ views })
  await lines.next()
  const latencies = await callFor(callers, plan.seconds)
  reply({ views: latencies.count })
  await lines.next()
  reply(percentilesOf(latencies))
}
