import ora, { type Ora } from 'ora'

/** Without a terminal, a step that takes longer than this prints a line. */
const SLOW_MS = 2_000

/**
 * Ignores errors of standard output and standard error (a closed terminal, `| head`), so that this process can still
 * stop its programs.
 *
 * @param then called once when standard output fails.
 */
export function surviveClosedOutput(then: () => void = () => {}): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', () => {})
  process.stdout.once('error', then)
}

/**
 * Whether standard error is a terminal that can show a spinner. With zero columns (some wrappers), ora would loop
 * forever.
 */
export function isLive(): boolean {
  return process.stderr.isTTY && process.stderr.columns > 0
}

export const print = (text = ''): void => void process.stdout.write(`${text}\n`)

export const printError = (text: string): void => void process.stderr.write(`${text}\n`)

/** The width of standard output; 80 if it is no terminal. */
export const columns = (): number => process.stdout.columns || 80

/** Breaks a line at spaces into lines of at most `width` characters; a longer word stays whole. */
export const wrapped = (line: string, width: number): string[] =>
  line.match(new RegExp(`(^ *|(?=\\S))(.{1,${width}}(?=\\s|$)|\\S+)`, 'g')) ?? ['']

/** A spinner that does not intercept Ctrl-C or the keyboard. */
export const spinner = (text: string): Ora => ora({ text, discardStdin: false, hideCursor: false })

/**
 * Shows progress during `work`: a temporary spinner in a terminal; elsewhere, a line if the work takes longer than two
 * seconds.
 *
 * @param work gets a function that shows the next step in the same way.
 */
export async function step<T>(
  text: string,
  work: (onStep: (text: string) => void) => Promise<T>,
): Promise<T> {
  const line = isLive() ? spinner(text).start() : undefined
  let timer: NodeJS.Timeout | undefined
  const show = (now: string) => {
    clearTimeout(timer)
    if (line) line.text = now
    else timer = setTimeout(() => printError(`${now} …`), SLOW_MS)
  }
  show(text)
  try {
    return await work(show)
  } finally {
    line?.stop()
    clearTimeout(timer)
  }
}
