import type { ResultRecord, Role } from '../../src/upstream/record.ts'

/** The keys of the builds in `emptyRecord`. */
export const keys: Readonly<Record<Role, string>> = {
  reference: 'a'.repeat(64),
  candidate: 'b'.repeat(64),
}

/** A result of stock and patched without runs. */
export function emptyRecord(): ResultRecord {
  const identity = {
    redisVersion: '8.0.6',
    source: 'Debian 8.0.6-3 (forky)',
    archiveSha256: '',
    debianPatches: [],
    patches: [],
    patchesSha256: '',
    compilers: { cc: '', cxx: '' },
  }
  return {
    format: 1,
    complete: false,
    command: '',
    updatedAt: '',
    machine: { cpu: '', cores: 2, memoryBytes: 0, kernel: '', node: '' },
    builds: {
      reference: { build: 'stock', key: keys.reference, ...identity },
      candidate: { build: 'patched', key: keys.candidate, ...identity },
    },
    comparisons: [],
    runs: [],
  }
}
