import ora from 'ora'

/** Tells people on standard error how far the work is; standard output is left to results. */
export interface Progress {
  /** The next step begins, and so the one before has succeeded. */
  step(text: string): void
  /** The current step goes on; called as often as there is news. */
  update(text: string): void
  /** A line that stays. */
  note(text: string): void
  /** A line that stays and stands out. */
  warn(text: string): void
  /** The current step has ended; without `ok` it has failed. */
  end(ok: boolean): void
}

const PLAIN_UPDATE_INTERVAL_MS = 15_000

/** A spinner on a terminal; elsewhere, as in CI, a line per step and one every 15 s within a step. */
export function createProgress(env: NodeJS.ProcessEnv): Progress {
  const { isTTY, columns } = process.stderr
  // On a terminal that says it has no columns, as pseudo-terminals may, ora never stops erasing lines.
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
  // discardStdin would put the terminal into a mode in which Ctrl-C is only a character.
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
