import { isLive, print, spinner } from '@onetrip/stack/terminal.ts'
import type { Ora } from 'ora'

/** Without a terminal, a long run says after so many milliseconds each that it goes on. */
const PLAIN_MS = 10_000

/** Shows what is being run: in a terminal by a line that changes, else by a line per run. */
export interface RunProgress {
  /** A run begins; `note` is for a terminal only. */
  begin(text: string, note?: string): void
  /** How it goes, just now. */
  update(text: string): void
  /** The run is over; `text` says with what. */
  end(text: string): void
  /** Leaves the screen tidy, whatever happened. */
  close(): void
}

export function runProgress(): RunProgress {
  let current = ''
  let noted = ''
  let toldAt = 0
  let line: Ora | undefined
  const live = isLive()
  return {
    begin(text, note = '') {
      current = text
      noted = note === '' ? '' : `  (${note})`
      toldAt = performance.now()
      if (live) {
        line ??= spinner('')
        line.start(`${text}${noted}`)
      }
    },
    update(text) {
      if (line) line.text = `${current}  ${text}${noted}`
      else if (performance.now() - toldAt >= PLAIN_MS) {
        toldAt = performance.now()
        print(`${current}  ${text} …`)
      }
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
