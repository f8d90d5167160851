/** The builds that have a redis-server. */
export const serverBuilds = ['patched', 'stock', 'baseline'] as const
type Series = (typeof serverBuilds)[number]
/** A build, or one with the first patches of its series: `patched@0005` ends with patch 0005. */
export type ServerBuild = Series | `${Series}@${string}`

/**
 * All builds. `tools` has redis-cli and redis-benchmark, without our patches; they work with every
 * server. It is a build of its own because `npm start` does not need it.
 */
export const buildNames = [...serverBuilds, 'tools'] as const
export type BuildName = ServerBuild | 'tools'

export function isServerBuild(name: string): name is ServerBuild {
  const series = name.replace(/@\d{4}$/, '')
  return serverBuilds.some((build) => build === series)
}

/** The programs that a build consists of. */
export function programsOf(build: BuildName): readonly string[] {
  return build === 'tools' ? ['redis-cli', 'redis-benchmark'] : ['redis-server']
}

/** Compilers' checks at run time, for tests: of memory, and of what threads share. */
export const sanitizers = ['address', 'thread'] as const
export type Sanitizer = (typeof sanitizers)[number]

/** What a build may be besides its name. */
export interface Variant {
  /** A build for tests, several times slower, which ends at the first thing that it finds. */
  sanitizer?: Sanitizer
  /** With TLS, which needs OpenSSL to build and to run. */
  tls?: boolean
}

/**
 * The variables for make. They fix what upstream's Makefile would otherwise take from the machine
 * (OpenSSL, systemd's libraries), and leave out what costs time to compile and changes nothing:
 * link-time optimization (README.md has the figures), debug information of jemalloc, and
 * the libraries that the tools do not use.
 */
export function makeFlagsOf(
  build: BuildName,
  { sanitizer, tls = false }: Variant,
): readonly string[] {
  const flags = [`BUILD_TLS=${tls ? 'yes' : 'no'}`, 'USE_SYSTEMD=no']
  // Sanitizers see only the allocations of libc.
  if (sanitizer) return [...flags, `SANITIZER=${sanitizer}`, 'MALLOC=libc', 'OPTIMIZATION=-O1']
  // -O3 alone would make upstream's Makefile add link-time optimization.
  flags.push('OPTIMIZATION=-O3 -fno-omit-frame-pointer')
  if (build === 'tools') {
    return [...flags, 'MALLOC=libc', 'DEPENDENCY_TARGETS=hiredis linenoise hdr_histogram']
  }
  // As upstream's Makefile, the bundled jemalloc on Linux and libc's allocator elsewhere.
  if (process.platform !== 'linux') return flags
  return [
    ...flags,
    'JEMALLOC_CFLAGS=-O3 -funroll-loops -g0',
    // jemalloc first: its configure occupies one core, and the others are built meanwhile.
    'DEPENDENCY_TARGETS=jemalloc hiredis linenoise lua hdr_histogram fpconv fast_float',
  ]
}
