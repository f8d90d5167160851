import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from '@onetrip/stack/program.ts'
import { expect, onTestFinished } from 'vitest'
import { SECRET } from './fixture.ts'

const folder = fileURLToPath(new URL('..', import.meta.url))

/**
 * The blocks of TypeScript in a document, by its path in the repository, that begin with an import. All others are parts
 * of a program.
 */
export const programsIn = (page: string): string[] =>
  programsOf(readFileSync(join(folder, '../..', page), 'utf8'))

/** The program of this package's README or reference that contains this word. */
export const documented = (word: string): string =>
  ['README', 'REFERENCE']
    .flatMap((page) => programsIn(`packages/session-store/${page}.md`))
    .find((text) => text.includes(word)) ?? ''

export const programsOf = (text: string): string[] =>
  [...text.matchAll(/^```ts\n(import .*?)^```$/gms)].map(([, program = '']) => program)

/** The environment of a program. */
export const envOf = (socket: string) => ({
  PATH: process.env.PATH,
  NODE_ENV: 'production',
  PORT: '0',
  REDIS_URL: `unix://${socket}`,
  SESSION_SECRET: SECRET,
})

/** The arguments of Node for a program of a document. It imports from the current folder. */
export const textArguments = (program: string, ...args: string[]): string[] => [
  '--input-type=module-typescript',
  '--eval',
  program,
  ...args,
]

/** Starts Node with these arguments. `send` sends requests, and stores cookies as a browser does. */
export async function startExample(name: string, socket: string, args: string[]) {
  const program = await startProgram({
    name,
    command: process.execPath,
    args,
    env: envOf(socket),
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
