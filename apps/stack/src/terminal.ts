import ora, { type Ora } from 'ora'

/** A step that takes longer than this says so also where there is no terminal to spin in. */
const SLOW_MS = 2_000

/**
 * Keeps the process alive when nobody reads its output any more (a closed terminal, `| head`): there
 * are still programs to stop.
 *
 * @param then is called once, if the reader of the results is gone.
 */
export function surviveClosedOutput(then?: () => void): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', () => {
    then?.()
    then = undefined
  })
}

/**
 * Whether there is a terminal that can show a line which changes. One that claims to have no columns
 * (as under some wrappers) cannot: ora would go round for ever.
 */
export function isLive(): boolean {
  return process.stderr.isTTY && process.stderr.columns > 0
}

export function print(text = ''): void {
  process.stdout.write(`${text}\n`)
}

export function printError(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Leaves Ctrl-C and the keyboard alone: what an interrupt does is decided elsewhere. */
export function spinner(text: string): Ora {
  return ora({ text, discardStdin: false, hideCursor: false })
}

/**
 * Does some work and shows that it goes on: by a spinner in a terminal, elsewhere by one line if it
 * takes longer than two seconds. Nothing of it stays when the work is done.
 */
export async function step<T>(text: string, work: () => Promise<T>): Promise<T> {
  if (isLive()) {
    const line = spinner(text).start()
    try {
      return await work()
    } finally {
      line.stop()
    }
  }
  const timer = setTimeout(() => printError(`${text} …`), SLOW_MS)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}
