import { createWriteStream } from 'node:fs'
import { setGlobalProxyFromEnv } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { RedisBuildError } from '../errors.ts'
import type { Job } from '../job.ts'

const DOWNLOAD_TIMEOUT_MS = 300_000
const RESPONSE_TIMEOUT_MS = 20_000

/**
 * Downloads a URL to a file. Follows redirects; uses the proxy of HTTPS_PROXY and similar variables.
 *
 * @throws RedisBuildError (SOURCE_UNAVAILABLE) if the response takes longer than 20 s, or the download longer
 *   than 300 s.
 */
export async function download(url: string, path: string, { env, signal }: Job): Promise<void> {
  const restoreProxy = setGlobalProxyFromEnv(env)
  const noResponse = new AbortController()
  const responseTimeout = setTimeout(
    () => noResponse.abort(new Error(`no response within ${RESPONSE_TIMEOUT_MS / 1000} s`)),
    RESPONSE_TIMEOUT_MS,
  )
  const limits = [signal, noResponse.signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]
  try {
    const response = await fetch(url, { signal: AbortSignal.any(limits) })
    clearTimeout(responseTimeout)
    if (!response.ok || !response.body) throw new Error(`HTTP status ${response.status}`)
    await pipeline(Readable.fromWeb(response.body), createWriteStream(path))
  } catch (error) {
    signal.throwIfAborted()
    throw new RedisBuildError('SOURCE_UNAVAILABLE', `${url}: ${reasonOf(error)}`, { cause: error })
  } finally {
    clearTimeout(responseTimeout)
    restoreProxy()
  }
}

// The message of fetch() is only "fetch failed"; the cause has the reason.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
