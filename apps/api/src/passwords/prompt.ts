import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'

/**
 * Reads a new password. On a terminal the user types it twice, without echo. Otherwise it is the first line
 * of standard input.
 *
 * @throws Error if the two passwords differ, or the input ends early.
 */
export async function newPassword(prompt: string, again: string): Promise<string> {
  const terminal = process.stdin.isTTY === true
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal })
  try {
    if (!terminal) return await firstOf(lines)
    const password = await ask(lines, prompt)
    if ((await ask(lines, again)) !== password) throw new Error('the two passwords differ')
    return password
  } finally {
    lines.close()
  }
}

const nothingEntered = () => new Error('no password was entered')

async function firstOf(lines: Interface): Promise<string> {
  for await (const line of lines) return line
  throw nothingEntered()
}

async function ask(lines: Interface, question: string): Promise<string> {
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  lines.once('close', interrupt) // Ctrl-C or Ctrl-D
  process.stderr.write(question)
  try {
    return await lines.question('', { signal: interrupted.signal })
  } catch {
    throw nothingEntered()
  } finally {
    lines.off('close', interrupt)
    process.stderr.write('\n')
  }
}
