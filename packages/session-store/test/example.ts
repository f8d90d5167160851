import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { expect, onTestFinished } from 'vitest'
import { SECRET } from './fixture.ts'

/** The path of an example, and the environment that it runs in. */
export const exampleOf = (file: string, socket: string) => ({
  path: fileURLToPath(new URL(`../examples/${file}`, import.meta.url)),
  env: {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    PORT: '0',
    REDIS_URL: `unix://${socket}`,
    SESSION_SECRET: SECRET,
  },
})

/** Starts an example as a process. `send` sends requests, and stores cookies as a browser does. */
export async function startExample(file: string, socket: string, ...args: string[]) {
  const { path, env } = exampleOf(file, socket)
  const program = await startProgram({
    name: file,
    command: process.execPath,
    args: [path, ...args],
    env,
    ready: /127\.0\.0\.1|port: \d+/,
    readyTimeoutMs: 100_000,
  })
  onTestFinished(() => program.stop().then(() => undefined))
  const lines = program.lastLines.join('\n')
  const port = /(?:127\.0\.0\.1:|port: )(\d+)/.exec(lines)?.[1]
  const cookies = new Map<string, string>()
  const send = async (method: string, path: string, headers = {}, body?: object) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { cookie, ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    for (const header of response.headers.getSetCookie()) {
      const [name = '', value = ''] = header.split(';')[0]?.split('=') ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    return { status: response.status, body: (await response.json()) as unknown }
  }
  const stop = async () => expect(await program.stop()).toEqual({ code: 0, signal: null })
  return { lines, port, cookies, send, stop }
}
