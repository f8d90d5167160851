/** Shows the progress on standard error. Standard output is for results. */
export interface Progress {
  /** Prints a line. */
  note(text: string): void
  /** Shows the state of a long step: on a terminal in one line, elsewhere as a line every 15 s. */
  update(text: string): void
}

const PLAIN_UPDATE_INTERVAL_MS = 15_000
const CLEAR_LINE = '\r\x1b[K'

export function createProgress(): Progress {
  const { stderr } = process
  const isLive = stderr.isTTY
  let lastLine = performance.now()
  return {
    note(text) {
      lastLine = performance.now()
      stderr.write(`${isLive ? CLEAR_LINE : ''}${text}\n`)
    },
    update(text) {
      if (isLive) stderr.write(`${CLEAR_LINE}${text.slice(0, (stderr.columns || 80) - 1)}`)
      else if (performance.now() - lastLine >= PLAIN_UPDATE_INTERVAL_MS) this.note(text)
    },
  }
}

/** Shows the elapsed time while `work` runs. */
export async function timed<T>(
  progress: Progress,
  text: string,
  work: () => Promise<T>,
): Promise<T> {
  progress.note(text)
  const started = performance.now()
  const seconds = () => `${Math.round((performance.now() - started) / 1000)} s`
  const timer = setInterval(() => progress.update(`${text}: ${seconds()}`), 1_000)
  try {
    const result = await work()
    progress.note(`${text}: done in ${seconds()}`)
    return result
  } finally {
    clearInterval(timer)
  }
}
