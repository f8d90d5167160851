interface Release {
  version: string
  /** SHA-256 of GitHub's archive of the tag, which Debian ships unchanged as `.orig.tar.gz`. */
  sha256: string
}

/**
 * The known releases, oldest first. Sources are verified against their hashes, which were taken from Debian's
 * signed source index and compared with `git archive` of the upstream tags.
 */
export const releases: readonly Release[] = [
  { version: '8.0.2', sha256: 'caf3c0069f06fc84c5153bd2a348b204c578de80490c73857bee01d9b5d7401f' },
  { version: '8.0.6', sha256: '763bf3005bcbf77c1d8145016a9627e45219665f99cf5a736bc73ec70faf0c8e' },
]

/** The URL of a release archive, for machines without a Debian mirror. */
export function releaseUrl(version: string): string {
  return `https://github.com/redis/redis/archive/refs/tags/${version}.tar.gz`
}

export function newestRelease(): Release {
  const newest = releases.at(-1)
  if (!newest) throw new Error('the table of releases is empty')
  return newest
}
