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

/** Compilers' checks at run time, for tests: of memory, and of what threads share. */
export const sanitizers = ['address', 'thread'] as const
type Sanitizer = (typeof sanitizers)[number]

/** What a build may be besides its name. */
export interface Variant {
  /** A build for tests, several times slower, which ends at the first thing that it finds. */
  sanitizer?: Sanitizer
  /** With TLS, which needs OpenSSL to build and to run. */
  tls?: boolean
}

/**
 * What make is told besides what to build. The values fix what upstream's Makefile would otherwise
 * take from the machine: OpenSSL and systemd's libraries, whether they are there or not. The allocator
 * stays upstream's choice, which is the bundled jemalloc on Linux and libc's elsewhere; with a
 * sanitizer it is libc's, the only one that they see.
 */
export function makeFlagsOf({ sanitizer, tls = false }: Variant): readonly string[] {
  return [
    ...[`BUILD_TLS=${tls ? 'yes' : 'no'}`, 'USE_SYSTEMD=no'],
    ...(sanitizer ? [`SANITIZER=${sanitizer}`, 'MALLOC=libc', 'OPTIMIZATION=-O1'] : []),
  ]
}
