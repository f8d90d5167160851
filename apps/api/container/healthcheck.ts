// Exits with 0 if the API in this container answers. Not /readyz: an API does not become unhealthy because
// Redis is away. In the first 30 s the proxy (PROXY), if it runs, must have found an API, too:
// `docker compose up --wait` returns when this container is healthy, and the proxy looks once a second.
import { Resolver } from 'node:dns/promises'
import { statSync, writeFileSync } from 'node:fs'

const FIRST_MS = 30_000
const WITHIN_MS = 1_500

async function isFine(url: string): Promise<boolean> {
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(WITHIN_MS) })
    console.log(`${url}: ${status}`)
    return ok
  } catch (error) {
    console.log(`${url}: ${error}`)
    return false
  }
}

/** Whether a service runs. The name of one that does not may go to the name servers of the host. */
async function runs(host: string): Promise<boolean> {
  // Not lookup(): it cannot be given up.
  const addresses = await new Resolver({ timeout: 1_000, tries: 1 }).resolve4(host).catch(() => [])
  return addresses.length > 0
}

function millisecondsSinceFirstCheck(): number {
  const file = '/tmp/first-check'
  try {
    writeFileSync(file, '', { flag: 'wx' })
  } catch {
    // This is not the first one.
  }
  return Date.now() - statSync(file).mtimeMs
}

const { PORT = '3000', PROXY } = process.env
let healthy = await isFine(`http://127.0.0.1:${PORT}/healthz`)
if (healthy && PROXY && millisecondsSinceFirstCheck() < FIRST_MS) {
  const url = new URL('/readyz?exclude=redis', PROXY)
  if (await runs(url.hostname)) healthy = await isFine(url.href)
}
process.exit(healthy ? 0 : 1)
