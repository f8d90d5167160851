import { RedisBuildError } from '../errors.ts'
import { sha256OfFile } from '../files.ts'
import { releases } from '../releases.ts'

/**
 * Checks a file against the hash that it must have.
 *
 * @throws RedisBuildError (SOURCE_REFUSED) with both hashes.
 */
export async function verify(path: string, expected: string, what: string): Promise<void> {
  const actual = await sha256OfFile(path)
  if (actual === expected.toLowerCase()) return
  throw new RedisBuildError(
    'SOURCE_REFUSED',
    `${what} was refused: its SHA-256 is not the expected one.
  expected ${expected.toLowerCase()}
  actual   ${actual}`,
  )
}

/**
 * Checks a source that a user gives against the hash that comes with it, or else the known releases.
 *
 * @returns its SHA-256.
 * @throws RedisBuildError (SOURCE_REFUSED) with the hashes.
 */
export async function verifyGiven(
  path: string,
  expected: string | undefined,
  what: string,
): Promise<string> {
  const actual = await sha256OfFile(path)
  if (expected) await verify(path, expected, what)
  else if (!releases.some(({ sha256 }) => sha256 === actual)) {
    throw new RedisBuildError(
      'SOURCE_REFUSED',
      `${what} was refused: its SHA-256 is that of no release known here.
${releases.map(({ version, sha256 }) => `  expected ${sha256} (Redis ${version})`).join('\n')}
  actual   ${actual}
If you trust it, say so: --sha256 ${actual}`,
    )
  }
  return actual
}
