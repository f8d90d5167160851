import { type Dispatcher, request } from 'undici'

/** The outcome of a write, as far as its client knows: written, possibly written, not written. */
export type Outcome = 'acknowledged' | 'unknown' | 'not written'

export interface Answer<Body> {
  readonly outcome: Outcome
  /** The status if it is 2xx, otherwise the code of the error or of the broken connection. */
  readonly answer: string
  /** The body of a 2xx response, if any. */
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
 * Sends one request to an API, without retries.
 *
 * @throws Error for a response that is neither 2xx nor a complete 503 of the API, which says whether the write
 *   may have happened and when to retry.
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
    // Only a request that never left this process is certainly not written.
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
    throw new Error(`${method} ${path} returned ${statusCode}: ${text}`)
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
