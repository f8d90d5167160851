import { RedisBuildError } from './errors.ts'

export const buildNames = ['patched', 'stock', 'baseline'] as const
export type BuildName = (typeof buildNames)[number]

/** @throws RedisBuildError (USAGE) for anything but the name of a build. */
export function buildName(text: string): BuildName {
  const name = buildNames.find((known) => known === text)
  if (name) return name
  throw new RedisBuildError(
    'USAGE',
    `There is no build '${text}'. The builds are ${buildNames.join(', ')}.`,
  )
}

/** The programs that a build consists of. */
export const programs = ['redis-server', 'redis-cli', 'redis-benchmark'] as const
export type ProgramName = (typeof programs)[number]

/**
 * What make is told besides what to build. The values fix what upstream's Makefile would otherwise
 * take from the machine: no OpenSSL and no systemd libraries, whether they are there or not. The
 * allocator stays upstream's choice, which is the bundled jemalloc on Linux and libc's elsewhere.
 */
const makeFlags: readonly string[] = ['BUILD_TLS=no', 'USE_SYSTEMD=no']

/** Compilers' checks at run time, for tests: of memory, and of what threads share. */
export const sanitizers = ['address', 'thread'] as const
export type Sanitizer = (typeof sanitizers)[number]

/** The flags of a build. With a sanitizer the allocator is libc's, the only one that they see. */
export function makeFlagsOf(sanitizer: Sanitizer | undefined): readonly string[] {
  return sanitizer
    ? [...makeFlags, `SANITIZER=${sanitizer}`, 'MALLOC=libc', 'OPTIMIZATION=-O1']
    : makeFlags
}
