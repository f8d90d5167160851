import { startProgram } from '@onetrip/stack/program.ts'

/** A program that is attached to a thread: its name, its arguments, and the output that says that it is attached. */
interface Tracer {
  command: string
  args: readonly string[]
  attached: RegExp
}

/**
 * Runs `work` while a tracer is attached, and ends the tracer with SIGINT, after which it prints its counts.
 *
 * @returns `lines` is the output of the tracer. If it is not installed or lacks permission, `work` runs without it.
 * @throws the error of `work`; the reason of `signal`.
 */
export async function underTracer<Result>(
  { command, args, attached }: Tracer,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<{ lines: readonly string[]; result: Result }> {
  const lines: string[] = []
  const tracer = await startProgram({
    name: command,
    command,
    args,
    ready: attached,
    signal,
    env: { ...process.env, LC_ALL: 'C' },
    onLine: (line) => lines.push(line),
  }).catch(() => null)
  try {
    const result = await work()
    tracer?.signal('SIGINT')
    await tracer?.exited
    return { lines, result }
  } finally {
    await tracer?.stop()
  }
}
