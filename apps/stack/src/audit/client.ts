import { type Dispatcher, request } from 'undici'

/** What a client knows about a request that writes: it did, it may have, it did not. */
export type Outcome = 'acknowledged' | 'unknown' | 'not written'

export interface Answer<Body> {
  readonly outcome: Outcome
  /** The status if it is 2xx, else the code of the error, or that of the broken connection. */
  readonly answer: string
  /** Of a response with 2xx that has a body. */
  readonly body: Body | undefined
  readonly milliseconds: number
}

export interface Call {
  /** Default `POST`. */
  readonly method?: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly token?: string
  readonly body?: object
}

interface ErrorBody {
  code?: string
  mayHaveWritten?: boolean
  retrySafe?: boolean
}

/**
 * Sends one request to an API, once.
 *
 * @throws Error for a response that is neither 2xx nor a complete 503 of the API: one that says whether it may
 *   have written and when to retry.
 */
export async function send<Body>(
  origin: string,
  { method = 'POST', path, token, body }: Call,
  dispatcher?: Dispatcher,
): Promise<Answer<Body>> {
  const begin = performance.now()
  const answered = (outcome: Outcome, answer: string, body?: Body): Answer<Body> => {
    return { outcome, answer, body, milliseconds: performance.now() - begin }
  }
  let response: Dispatcher.ResponseData
  let text: string
  try {
    response = await request(origin + path, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body ? JSON.stringify(body) : null,
      ...(dispatcher && { dispatcher }),
    })
    text = await response.body.text()
  } catch (error) {
    const { code, cause } = error as NodeJS.ErrnoException
    const answer = (cause as NodeJS.ErrnoException | undefined)?.code ?? code ?? String(error)
    // Only what never left this process is certain not to have been written.
    return answered(answer === 'ECONNREFUSED' ? 'not written' : 'unknown', answer)
  }
  const { statusCode, headers } = response
  if (statusCode >= 200 && statusCode < 300) {
    return answered('acknowledged', String(statusCode), text === '' ? undefined : JSON.parse(text))
  }
  const { code = '', mayHaveWritten, retrySafe } = errorIn(text)
  if (
    statusCode !== 503 ||
    typeof mayHaveWritten !== 'boolean' ||
    typeof retrySafe !== 'boolean' ||
    headers['retry-after'] === undefined
  ) {
    throw new Error(`${method} ${path} was answered with ${statusCode}: ${text}`)
  }
  return answered(mayHaveWritten ? 'unknown' : 'not written', code)
}

function errorIn(text: string): ErrorBody {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
