import { sentence } from './format.js'

/** A request without a response, or with an error response. The page shows the message. */
export class CallError extends Error {
  /**
   * @param {number} status 0 without a response.
   * @param {string} code `API_…` or `ONETRIP_…`; empty without a response.
   * @param {string} message
   * @param {{ retryAfterMs?: number, mayHaveWritten?: boolean }} [details]
   */
  constructor(status, code, message, { retryAfterMs = 0, mayHaveWritten = status === 0 } = {}) {
    super(message)
    this.name = 'CallError'
    this.status = status
    this.code = code
    this.retryAfterMs = retryAfterMs
    /** Whether the API may have executed the request. */
    this.mayHaveWritten = mayHaveWritten
  }

  /** Whether the API answers but Redis does not. */
  get isRedisDown() {
    return this.status === 503 && this.code.startsWith('ONETRIP_')
  }
}

/** @typedef {'api' | 'redis' | null} Outage The service that does not answer. */

/** @type {Outage} */
let outage = null
/** @type {((outage: Outage) => void)[]} */
const listeners = []

/** Calls the listener when Redis or the API goes down or comes back. @param {(outage: Outage) => void} listener */
export function onOutage(listener) {
  listeners.push(listener)
}

/** @param {Outage} next */
function setOutage(next) {
  if (next === outage) return
  outage = next
  for (const listener of listeners) listener(next)
}

// These routes do not use Redis, so a response does not mean that Redis is back.
const withoutRedis = new Set(['/demo', '/demo/race', '/readyz?exclude=redis'])

/** @param {string} path @param {CallError | null} error */
function noteOutcome(path, error) {
  if (error === null) {
    if (outage === 'api' || !withoutRedis.has(path)) setOutage(null)
  } else if (error.status === 0) setOutage('api')
  else if (error.isRedisDown) setOutage('redis')
  else if (outage === 'api') setOutage(null)
}

/**
 * Sends a request to the API and returns the JSON of its response (undefined for 204).
 *
 * @param {'GET' | 'POST' | 'DELETE'} method
 * @param {string} path
 * @param {{ body?: unknown, headers?: Record<string, string> }} [options]
 * @returns {Promise<any>} See the OpenAPI document.
 * @throws {CallError}
 */
export async function call(method, path, { body, headers } = {}) {
  try {
    const answer = await send(method, path, {
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    noteOutcome(path, null)
    return answer
  } catch (error) {
    if (error instanceof CallError) noteOutcome(path, error)
    throw error
  }
}

/** @param {string} method @param {string} path @param {RequestInit} options */
async function send(method, path, options) {
  const response = await fetch(path, { method, ...options }).catch(() => {
    throw new CallError(0, '', 'The API does not answer.')
  })
  if (response.status === 204) return undefined
  const json = await response.json().catch(() => undefined)
  if (response.ok && json !== undefined) return json
  const { code = '', message = `The API answered with ${response.status}.` } = json ?? {}
  const mayHaveWritten = json?.mayHaveWritten ?? response.status >= 500
  const retryAfterMs = 1000 * Number(response.headers.get('retry-after'))
  throw new CallError(response.status, code, sentence(message), { retryAfterMs, mayHaveWritten })
}

/**
 * Text of an error for the page. Unexpected errors also go to the console.
 *
 * @param {unknown} error
 */
export function messageFor(error) {
  if (!(error instanceof CallError)) {
    reportError(error)
    return 'Something went wrong on this page. Reload it.'
  }
  if (error.isRedisDown) return 'Redis does not answer. Try again in a moment.'
  if (error.status === 429) {
    const seconds = Math.max(1, Math.round(error.retryAfterMs / 1000))
    return `Too many requests. Try again in ${seconds === 1 ? 'a second' : `${seconds} seconds`}.`
  }
  return error.message
}
