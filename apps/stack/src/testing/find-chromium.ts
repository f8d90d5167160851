import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const candidates = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))

/** The path of Chromium: `CHROMIUM`, otherwise the first `chromium` in the PATH. Undefined if not found. */
export const chromiumPath: string | undefined = process.env.CHROMIUM || candidates.find(canRun)

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Prints a warning without Chromium: tests that need it are skipped. */
export default function setup(): void {
  if (chromiumPath !== undefined) return
  console.warn(
    'Chromium not found: browser tests are skipped.\n' +
      'Install it (apt-get install chromium), or set CHROMIUM to its path.',
  )
}
