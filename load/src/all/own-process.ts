import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Problem } from '@onetrip/stack/problem.ts'
import { startProgram } from '@onetrip/stack/program.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { ResultDocument } from '../report/outputs.ts'

const cli = fileURLToPath(new URL('../cli.ts', import.meta.url))

/**
 * Runs a command of `npm run load` in a process of its own, and resolves with what it measured. For
 * those that begin their process anew in another network: done to this one, that would lose what was
 * measured before.
 *
 * @param args as on the command line, without the files to write.
 * @throws Problem when it failed, which it has said itself; the reason of `interrupt`.
 */
export async function inProcessOfItsOwn(
  args: readonly string[],
  interrupt: AbortSignal,
): Promise<ResultDocument> {
  interrupt.throwIfAborted()
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-all-'))
  try {
    const file = join(folder, 'result.json')
    const program = await startProgram({
      name: args.join(' '),
      command: process.execPath,
      args: [...process.execArgv, cli, ...args, '--json', file, '--no-report'],
      ready: async () => {},
      onLine: print,
    })
    const stop = () => void program.stop()
    interrupt.addEventListener('abort', stop, { once: true })
    if (interrupt.aborted) stop()
    const { code } = await program.exited
    interrupt.removeEventListener('abort', stop)
    interrupt.throwIfAborted()
    if (code !== 0) throw new Problem(`npm run load -- ${args.join(' ')} failed; see above.`)
    return JSON.parse(await readFile(file, 'utf8')) as ResultDocument
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
