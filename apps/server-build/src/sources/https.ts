import { createWriteStream } from 'node:fs'
import { setGlobalProxyFromEnv } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { RedisBuildError } from '../errors.ts'
import type { Job } from '../job.ts'

const WHOLE_DOWNLOAD_MS = 300_000
const FIRST_ANSWER_MS = 20_000

/**
 * Downloads to a file; follows redirects and the usual proxy variables (HTTPS_PROXY and so on).
 *
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) when it does not come whole within 300 s, or its first
 *   byte not within 20 s.
 */
export async function download(url: string, path: string, { env, signal }: Job): Promise<void> {
  const restoreProxy = setGlobalProxyFromEnv(env)
  const silent = new AbortController()
  const patience = setTimeout(
    () => silent.abort(new Error(`no answer within ${FIRST_ANSWER_MS / 1000} s`)),
    FIRST_ANSWER_MS,
  )
  const limits = [signal, silent.signal, AbortSignal.timeout(WHOLE_DOWNLOAD_MS)]
  try {
    const response = await fetch(url, { signal: AbortSignal.any(limits) })
    clearTimeout(patience)
    if (!response.ok || !response.body) throw new Error(`HTTP status ${response.status}`)
    await pipeline(Readable.fromWeb(response.body), createWriteStream(path))
  } catch (error) {
    signal.throwIfAborted()
    throw new RedisBuildError('SOURCE_UNAVAILABLE', `${url}: ${reasonOf(error)}`, { cause: error })
  } finally {
    clearTimeout(patience)
    restoreProxy()
  }
}

// fetch() says "fetch failed" and keeps what happened to itself.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
