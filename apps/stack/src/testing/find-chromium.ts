import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const candidates = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))

/** The path of Chromium: `CHROMIUM`, or else the first `chromium` on the PATH. Undefined: there is none. */
export const chromiumPath: string | undefined = process.env.CHROMIUM || candidates.find(canRun)

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Prints a line where there is no Chromium: the tests that need it are skipped. */
export default function setup(): void {
  if (chromiumPath !== undefined) return
  console.warn(
    'No Chromium was found: the browser tests are skipped.\n' +
      'Install it (apt-get install chromium), or set CHROMIUM to the path of one.',
  )
}
