import { type Metric, parseMetrics } from '@onetrip/stack/metrics.ts'
import { bearer } from './support.ts'

interface Question {
  /** Default: POST with a body, GET without. */
  method?: string
  token?: string | undefined
  body?: object
  headers?: Record<string, string>
}

/** Sends a request to an API process. Returns the fields of its JSON response, and `status`. */
export async function ask(url: string, question: Question = {}): Promise<Record<string, unknown>> {
  const { token, body, headers } = question
  const { method = body ? 'POST' : 'GET' } = question
  const answer = await fetch(url, {
    method,
    headers: {
      ...(token !== undefined && bearer(token)),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { ...(text && JSON.parse(text)), status: answer.status }
}

/** Logs in, and returns the token. */
export const logIn = async (url: string, user = 'ada'): Promise<string> =>
  String((await ask(`${url}/login`, { body: { user } })).token)

export const metricsOf = async (url: string): Promise<Metric[]> =>
  parseMetrics(await (await fetch(`${url}/metrics`)).text())

/** `onetrip_store_pool_connections`: how many are `ready` and `down`. */
export async function connectionsOf(url: string): Promise<Record<string, number>> {
  const metrics = await metricsOf(url)
  const states = metrics.filter(({ name }) => name === 'onetrip_store_pool_connections')
  return Object.fromEntries(states.map(({ labels, value }) => [labels.state, value]))
}
