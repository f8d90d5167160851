import { Problem } from '@onetrip/stack/problem.ts'
import { describeExit, type LaunchOptions, launch } from '@onetrip/stack/program.ts'

/**
 * Runs a program, and returns the last line of JSON that it printed.
 *
 * @param signal sends it SIGINT, after which it prints what it has until then.
 * @throws Problem with its last lines when it printed none; the reason of `signal` if it was aborted before.
 */
export async function runForJson<T>(options: LaunchOptions, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const { lastLines, exited, signal: send } = launch(options)
  const stop = () => send('SIGINT')
  signal.addEventListener('abort', stop)
  const exit = await exited
  signal.removeEventListener('abort', stop)
  const line = lastLines.findLast((line) => line.startsWith('{'))
  if (line !== undefined) return JSON.parse(line)
  const text = lastLines.map((line) => `\n  ${line}`).join('')
  throw new Problem(`${options.name} printed no result (${describeExit(exit)}):${text}`)
}
