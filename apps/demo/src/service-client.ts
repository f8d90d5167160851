import { PassThrough, type Readable } from 'node:stream'
import { ApiError, type ApiErrorCode, type ErrorKind } from '@onetrip/api'
import { type Dispatcher, Pool } from 'undici'
import { noRace, raceRunning, serviceFailed } from './errors.ts'
import type { Demo, Done } from './events.ts'

/** Long, because the first trace of a view (`POST /demo/wire`) starts two APIs. */
const TIMEOUT_MS = 60_000

const NO_RACE = 'no demo service is running; npm start starts one unless the race is switched off'

/** Client of the demo service, the program of `npm start` that runs the race. It listens on a Unix socket. */
export class DemoService {
  readonly #pool: Pool | undefined
  readonly #streams = new Set<PassThrough>()

  /** @param socket Path of its Unix socket; empty if no demo service runs. */
  constructor(socket: string) {
    if (socket === '') return
    const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: 0 } // events may be minutes apart
    this.#pool = new Pool('http://demo', { socketPath: socket, ...timeouts })
  }

  /** Limits of a race. Without a demo service, `why` is the reason. */
  async limits(): Promise<Demo> {
    try {
      return (await this.call('GET', '/race')) as Demo
    } catch (error) {
      if (error instanceof ApiError) return { race: null, why: error.message }
      throw error
    }
  }

  /** @throws ApiError if the service rejects the request, does not answer or does not run. */
  async call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const answer = await this.#request(method, path, body)
    return await answer.body.json()
  }

  /** The result of a race. @throws ApiError as for `call`. */
  async result(id: string): Promise<Done> {
    return (await this.call('GET', `/race/result?${encodeURIComponent(id)}`)) as Done
  }

  /** The image of a result as PNG. @throws ApiError as for `call`. */
  async image(id: string): Promise<Buffer> {
    const { body } = await this.#request('GET', `/race/image?${encodeURIComponent(id)}`)
    return Buffer.from(await body.arrayBuffer())
  }

  /**
   * Streams the events of races. The stream ends when the service stops, or with `endStreams`.
   *
   * @throws ApiError as for `call`.
   */
  async events(): Promise<Readable> {
    const { body } = await this.#request('GET', '/race/events')
    const stream = new PassThrough()
    this.#streams.add(stream)
    body.on('error', () => {}) // 'close' follows
    body.on('data', (chunk: Buffer) => void stream.write(chunk))
    body.once('close', () => stream.end())
    stream.once('close', () => {
      this.#streams.delete(stream)
      body.destroy()
    })
    return stream
  }

  /** Ends the streams gracefully: clients still get the events sent before. */
  endStreams(): void {
    for (const stream of this.#streams) stream.end()
  }

  async close(): Promise<void> {
    await this.#pool?.destroy()
  }

  async #request(method: 'GET' | 'POST', path: string, body?: unknown) {
    if (!this.#pool) throw new ApiError(noRace, NO_RACE)
    const options: Dispatcher.RequestOptions = { method, path }
    if (body !== undefined) options.body = JSON.stringify(body)
    const answer = await this.#pool.request(options).catch(() => {
      throw new ApiError(serviceFailed, 'the demo service does not answer')
    })
    if (answer.statusCode < 300) return answer
    const { message } = (await answer.body.json()) as { message: string }
    throw new ApiError(errorOfStatus[answer.statusCode] ?? serviceFailed, message)
  }
}

const errorOfStatus: Partial<Record<number, ApiErrorCode | ErrorKind>> = {
  400: 'API_BAD_REQUEST',
  404: noRace,
  409: raceRunning,
}
