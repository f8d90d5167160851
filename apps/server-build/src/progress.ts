import ora from 'ora'

/** Shows the progress on standard error. Standard output is for results. */
export interface Progress {
  /** Starts the next step; the previous step has succeeded. */
  step(text: string): void
  /** Updates the text of the current step. */
  update(text: string): void
  /** Prints a line that stays. */
  note(text: string): void
  /** Prints a highlighted line that stays. */
  warn(text: string): void
  /** Ends the current step; `ok` says whether it succeeded. */
  end(ok: boolean): void
}

const PLAIN_UPDATE_INTERVAL_MS = 15_000

/** A spinner on a terminal; elsewhere, as in CI, one line per step and one every 15 s within a step. */
export function createProgress(env: NodeJS.ProcessEnv): Progress {
  const { isTTY, columns } = process.stderr
  // On a terminal with 0 columns (some pseudo-terminals), ora erases lines forever.
  return isTTY && columns > 0 && !env.CI ? spinner() : plainLines()
}

function plainLines(): Progress {
  const print = (text: string) => void process.stderr.write(`${text}\n`)
  let lastUpdate = 0
  return {
    step(text) {
      lastUpdate = performance.now()
      print(text)
    },
    update(text) {
      if (performance.now() - lastUpdate < PLAIN_UPDATE_INTERVAL_MS) return
      lastUpdate = performance.now()
      print(text)
    },
    note: print,
    warn: (text) => print(`WARNING: ${text}`),
    end() {},
  }
}

function spinner(): Progress {
  // discardStdin would set a terminal mode in which Ctrl-C sends no signal.
  const spin = ora({ stream: process.stderr, discardStdin: false })
  const aside = (print: () => void) => {
    const { isSpinning, text } = spin
    if (isSpinning) spin.stop()
    print()
    if (isSpinning) spin.start(text)
  }
  return {
    step(text) {
      if (spin.isSpinning) spin.succeed()
      spin.start(text)
    },
    update(text) {
      spin.text = text
    },
    note: (text) => aside(() => void process.stderr.write(`${text}\n`)),
    warn: (text) => aside(() => void process.stderr.write(`\x1b[1;33mWARNING: ${text}\x1b[0m\n`)),
    end(ok) {
      if (!spin.isSpinning) return
      if (ok) spin.succeed()
      else spin.fail()
    },
  }
}
