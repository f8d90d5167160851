import { isLive, print, spinner } from '@onetrip/stack/terminal.ts'

/** Without a terminal, a long run prints a line each time so many milliseconds have passed. */
const PLAIN_MS = 10_000

/** Shows what is being run: in a terminal by a line that changes, else by a line per run. */
export function runProgress() {
  const line = isLive() ? spinner('') : null
  let current = ''
  let left = ''
  let printedAt = 0
  return {
    /** A run begins; the time left is shown in a terminal only. */
    begin(text: string, timeLeft: string) {
      current = text
      left = timeLeft && `  (${timeLeft})`
      printedAt = performance.now()
      line?.start(`${text}${left}`)
    },
    update(text: string) {
      if (line) line.text = `${current}  ${text}${left}`
      else if (performance.now() - printedAt >= PLAIN_MS) {
        printedAt = performance.now()
        print(`${current}  ${text} …`)
      }
    },
    /** The run is over; `text` has its figures. */
    end(text: string) {
      if (!line) print(`${current}  ${text}`)
    },
    /** Leaves the screen tidy. */
    close() {
      if (line) line.stop()
      else print()
    },
  }
}
