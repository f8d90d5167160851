import { RedisBuildError } from '../errors.ts'
import { sha256OfFile } from '../files.ts'
import { releases } from '../releases.ts'

/**
 * Checks the SHA-256 of a file against `expected`, in lower case.
 *
 * @throws RedisBuildError (SOURCE_REFUSED) with both hashes.
 */
export async function verify(path: string, expected: string, what: string): Promise<void> {
  const actual = await sha256OfFile(path)
  if (actual === expected) return
  throw new RedisBuildError(
    'SOURCE_REFUSED',
    `${what} was rejected: its SHA-256 is not the expected one.
  expected ${expected}
  actual   ${actual}`,
  )
}

/**
 * Checks the SHA-256 of a source that the user gave: against `expected`, or without it against the known
 * releases.
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
      `${what} was rejected: it is not a known release.
${releases.map(({ version, sha256 }) => `  expected ${sha256} (Redis ${version})`).join('\n')}
  actual   ${actual}
If you trust this file, add --sha256 ${actual}`,
    )
  }
  return actual
}
