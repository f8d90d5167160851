// Exits with 0 if the API in this container answers /healthz. Not /readyz: the container stays healthy while
// Redis is down. In the first 30 s, the proxy (PROXY), if it runs, must also have found an instance, because
// `docker compose up --wait` returns when this container is healthy and the proxy checks only once a second.
import { Resolver } from 'node:dns/promises'
import { statSync, writeFileSync } from 'node:fs'

const STARTUP_MS = 30_000
const TIMEOUT_MS = 1_500

async function isFine(url: string): Promise<boolean> {
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    console.log(`${url}: ${status}`)
    return ok
  } catch (error) {
    console.log(`${url}: ${error}`)
    return false
  }
}

/**
 * Whether a service runs. With a timeout: the name of a stopped service may be forwarded to external name
 * servers.
 */
async function runs(host: string): Promise<boolean> {
  // Not lookup(), which has no timeout.
  const addresses = await new Resolver({ timeout: 1_000, tries: 1 }).resolve4(host).catch(() => [])
  return addresses.length > 0
}

function millisecondsSinceFirstCheck(): number {
  const file = '/tmp/first-check'
  try {
    writeFileSync(file, '', { flag: 'wx' })
  } catch {
    // The file exists: this is not the first check.
  }
  return Date.now() - statSync(file).mtimeMs
}

const { PORT = '3000', PROXY } = process.env
let healthy = await isFine(`http://127.0.0.1:${PORT}/healthz`)
if (healthy && PROXY && millisecondsSinceFirstCheck() < STARTUP_MS) {
  const url = new URL('/readyz?exclude=redis', PROXY)
  if (await runs(url.hostname)) healthy = await isFine(url.href)
}
process.exit(healthy ? 0 : 1)
