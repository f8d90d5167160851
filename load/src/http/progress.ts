import type { Ora } from 'ora'
import { figure } from '../table.ts'
import { isLive, print, spinner } from '../terminal.ts'

/** Shows what a comparison is doing: in a terminal by a line that changes, else by a line per run. */
export interface RunProgress {
  begin(text: string): void
  /** Answers per second, just now. */
  rate(requestsPerSecond: number): void
  /** The run is over; `text` says with what. */
  end(text: string): void
  /** Leaves the screen tidy, whatever happened. */
  close(): void
}

export function runProgress(): RunProgress {
  let current = ''
  let line: Ora | undefined
  const live = isLive()
  return {
    begin(text) {
      current = text
      if (live) {
        line ??= spinner('')
        line.start(text)
      }
    },
    rate(requestsPerSecond) {
      if (line) line.text = `${current}  ${figure(requestsPerSecond)} requests/s`
    },
    end(text) {
      if (!live) print(`${current}  ${text}`)
    },
    close() {
      if (live) line?.stop()
      else print()
    },
  }
}
