import { setTimeout as delay } from 'node:timers/promises'
import { hideCredentials } from '@onetrip/stack/address.ts'
import { isReady } from '@onetrip/stack/api.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { step } from '@onetrip/stack/terminal.ts'
import { clientOf, type Variant } from '../../contenders.ts'
import { EXPLANATION_MS } from '../../experiment/rounds.ts'
import type { Circumstances, StackFacts } from '../../http/result.ts'
import { machine } from '../../measure/machine.ts'
import { logIn } from './sessions.ts'
import { findTarget, type Target, type TargetOptions } from './target.ts'

/** A stack that is going to be measured, and what watches it. */
export interface Stand {
  target: Target
  monitor: RedisMonitor
  /** In the order of the target's APIs. */
  variants: Variant[]
  circumstances: StackFacts & Pick<Circumstances, 'machine'>
  /** Aborted by Ctrl-C, and when a program of the stack is gone. */
  signal: AbortSignal
  /** To be called about once a second: gives up, by `signal`, when there is nothing left to measure. */
  watch(url: string, now: { requestsPerSecond: number; failures: number }): void
}

/**
 * Finds or starts the stack that is wanted. What it started is gone when `cleanup` is disposed.
 *
 * @throws Problem, ProgramError when there is none to be measured; the reason of `interrupt`.
 */
export async function openStand(
  wanted: TargetOptions,
  cleanup: AsyncDisposableStack,
  interrupt: AbortSignal,
): Promise<Stand> {
  const target = await findTarget(wanted, interrupt)
  cleanup.defer(() => (target.kind === 'own' ? stopTarget(target) : target.close()))
  const monitor = await RedisMonitor.connect(target.redis.url)
  cleanup.defer(() => monitor.close())
  const broken = new AbortController()
  watchPrograms(target, monitor, broken)
  if (target.apis.length === 0) throw new Problem('There is no variant to measure.')
  const variants = target.apis.map(({ variant }) => variant)
  const { url, transport } = target.redis
  return {
    target,
    monitor,
    variants,
    circumstances: {
      machine: machine(),
      redis: { ...(await monitor.facts()), transport, url: hideCredentials(url) },
      poolSize: target.poolSize,
      workers: target.workers,
      clients: await clientsOf(variants),
    },
    signal: AbortSignal.any([interrupt, broken.signal]),
    watch: (url, now) => void giveUpIfGone(url, now, broken),
  }
}

/**
 * Logs so many users in at each API, for they need not share the secret that tokens are signed with.
 *
 * @returns the tokens of each.
 * @throws Problem when an API refuses or does not answer; the reason of the stand's signal.
 */
export async function logInEverywhere(
  { target, signal }: Stand,
  sessions: number,
  cleanup: AsyncDisposableStack,
): Promise<Map<Variant, readonly string[]>> {
  const tokens = new Map<Variant, readonly string[]>()
  await step('Logging users in', async () => {
    for (const { variant, url } of target.apis) {
      const loggedIn = await logIn(url, sessions, signal)
      // What an own stack knows goes with it.
      if (target.kind !== 'own') cleanup.defer(() => loggedIn.end())
      tokens.set(variant, loggedIn.tokens)
    }
  })
  return tokens
}

/** Name and version of the Redis client of each variant that has one. */
async function clientsOf(variants: readonly Variant[]): Promise<Circumstances['clients']> {
  const clients: Circumstances['clients'] = {}
  for (const variant of variants) {
    const client = await clientOf(variant)
    if (client !== null) clients[variant] = client
  }
  return clients
}

async function stopTarget(target: Target): Promise<void> {
  await step('Stopping the stack of this comparison', () => target.close())
}

/** Aborts `broken`, with the reason, when a program of the stack is gone. */
function watchPrograms(target: Target, monitor: RedisMonitor, broken: AbortController): void {
  const told = target.lost.then(async (program) => broken.abort(await endOf(program)))
  void monitor.lost.then(async () => {
    // Of a Redis of our own it is known, in a moment, how it ended.
    if (target.kind === 'own') await Promise.race([told, delay(EXPLANATION_MS)])
    const where = hideCredentials(target.redis.url)
    const more = target.kind === 'running' ? ' npm start tells more, where it runs.' : ''
    broken.abort(new Problem(`Redis at ${where} closed the connection: it was stopped.${more}`))
  })
}

/** A second of nothing but failures: the API may be gone, and then there is nothing to measure. */
async function giveUpIfGone(
  url: string,
  now: { requestsPerSecond: number; failures: number },
  broken: AbortController,
): Promise<void> {
  if (now.requestsPerSecond > 0 || now.failures === 0 || (await isReady(url))) return
  broken.abort(new Problem(`The API at ${url} is not ready any more.`))
}
