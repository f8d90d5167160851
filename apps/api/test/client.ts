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

/** `onetrip_redis_up` by node. */
export async function upOf(url: string): Promise<Record<string, number>> {
  const up = (await metricsOf(url)).filter(({ name }) => name === 'onetrip_redis_up')
  return Object.fromEntries(up.map(({ labels, value }) => [labels.node, value]))
}
