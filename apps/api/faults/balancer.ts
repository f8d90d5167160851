import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { serve } from '@onetrip/stack/testing/serve.ts'
import { Agent, request } from 'undici'
import { onTestFinished } from 'vitest'

/** Shortest interval of a Kubernetes readiness probe. */
const CHECK_EVERY_MS = 1_000
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host']

export interface Balancer {
  readonly url: string
  /** The servers that get requests. */
  serving(): string[]
}

/**
 * A load balancer like a Kubernetes Service: probes `/readyz` of each server, sends requests in turn to those
 * that return 200, and never retries a request. A failed request gets 502. Closed when the current test ends.
 */
export async function balancerForThisTest(servers: readonly string[]): Promise<Balancer> {
  const ready = new Set<string>()
  const agent = new Agent()
  const over = new AbortController()
  let turn = 0

  const check = async (server: string) => {
    const timeout = AbortSignal.timeout(1_000)
    try {
      const answer = await request(`${server}/readyz?exclude=redis`, {
        signal: timeout,
        reset: true,
      })
      await answer.body.dump()
      if (answer.statusCode === 200) ready.add(server)
      else ready.delete(server)
    } catch {
      ready.delete(server)
    }
  }
  const checking = (async () => {
    while (!over.signal.aborted) {
      await Promise.all(servers.map(check))
      await delay(CHECK_EVERY_MS, undefined, { signal: over.signal }).catch(() => {})
    }
  })()

  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await buffer(incoming)
    const headers = without(incoming.headers)
    const { method = 'GET', url = '/' } = incoming
    const candidates = [...ready]
    const server = candidates[turn++ % candidates.length]
    try {
      if (server === undefined) throw new Error('no server is ready')
      const options = { method, headers, body: body.length > 0 ? body : null, dispatcher: agent }
      const answer = await request(`${server}${url}`, options as Parameters<typeof request>[1])
      const content = await answer.body.bytes()
      outgoing.writeHead(answer.statusCode, without(answer.headers)).end(content)
    } catch (error) {
      outgoing.writeHead(502).end(String(error))
    }
  }
  onTestFinished(async () => {
    over.abort()
    await checking
    await agent.destroy()
  })
  const url = await serve((incoming, outgoing) => void forward(incoming, outgoing))
  return { url, serving: () => [...ready] }
}

const without = <Value>(headers: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name)))
