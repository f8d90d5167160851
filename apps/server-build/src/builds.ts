/** The builds with a redis-server. */
export const serverBuilds = ['patched', 'stock', 'baseline'] as const
type Series = (typeof serverBuilds)[number]
/** A build, or the build with only the first patches of its series: `patched@0005` ends with patch 0005. */
export type ServerBuild = Series | `${Series}@${string}`

/**
 * All builds. `tools` has redis-cli and redis-benchmark, without our patches; they work with every server.
 * `tools` is a separate build because `npm start` does not need it.
 */
export const buildNames = [...serverBuilds, 'tools'] as const
export type BuildName = ServerBuild | 'tools'

export function isServerBuild(name: string): name is ServerBuild {
  const series = name.replace(/@\d{4}$/, '')
  return serverBuilds.some((build) => build === series)
}

/** What to say about a name that is not one of `choices`. */
export function refusalOf(choices: readonly string[]): string {
  return `Allowed choices are ${choices.join(', ')}. patched@0005 has the patches of patched up to 0005.`
}

/** The programs of a build. */
export function programsOf(build: BuildName): readonly string[] {
  return build === 'tools' ? ['redis-cli', 'redis-benchmark'] : ['redis-server']
}

/** Sanitizers of the compiler, for tests: `address` checks memory accesses, `thread` finds data races. */
export const sanitizers = ['address', 'thread'] as const
type Sanitizer = (typeof sanitizers)[number]

/** Options that change a build. */
export interface Variant {
  /** A build for tests, several times slower. By default, it exits at the first error that it finds. */
  sanitizer?: Sanitizer
  /** With TLS. Needs OpenSSL to build and to run. */
  tls?: boolean
}

/**
 * The variables for make. They set what upstream's Makefile would detect on the machine (OpenSSL, systemd),
 * and save compile time: no link-time optimization (README.md has the figures), no debug information in
 * jemalloc, and for the tools, only the libraries that they use.
 */
export function makeFlagsOf(
  build: BuildName,
  { sanitizer, tls = false }: Variant,
): readonly string[] {
  const flags = [`BUILD_TLS=${tls ? 'yes' : 'no'}`, 'USE_SYSTEMD=no']
  // Sanitizers track only libc's allocations. Optimizing takes longer than the tests at the limits gain by it.
  if (sanitizer) return [...flags, `SANITIZER=${sanitizer}`, 'MALLOC=libc', 'OPTIMIZATION=-O0']
  // -O3 alone would make upstream's Makefile add link-time optimization.
  flags.push('OPTIMIZATION=-O3 -fno-omit-frame-pointer')
  if (build === 'tools') {
    return [...flags, 'MALLOC=libc', 'DEPENDENCY_TARGETS=hiredis linenoise hdr_histogram']
  }
  // As in upstream's Makefile: the bundled jemalloc on Linux, libc's allocator elsewhere.
  if (process.platform !== 'linux') return flags
  return [
    ...flags,
    'JEMALLOC_CFLAGS=-O3 -funroll-loops -g0',
    // jemalloc first: its configure script uses one core, while make builds the others.
    'DEPENDENCY_TARGETS=jemalloc hiredis linenoise lua hdr_histogram fpconv fast_float',
  ]
}
