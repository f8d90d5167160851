import { expect, test } from 'vitest'
import { parseProfile } from '../src/drivers/redis/profile.ts'

test('parses shares of functions from a report of perf, and sums those of the kernel', () => {
  const report = [
    "# Samples: 2K of event 'cycles'",
    '# Overhead;Symbol                    ;IPC   [IPC Coverage]',
    '50.25%  ;[.] listSearchKey            ;-      -            ',
    '20.50%  ;[k] _raw_spin_lock_bh        ;-      -            ',
    ' 9.50%  ;[k] fput                     ;-      -            ',
    ' 2.00%  ;[.] pthread_mutex_trylock@@GLIBC_2.34;-      -            ',
    ' 0.25%  ;[.] 0x00000000000418c1       ;-      -            ',
    '',
  ].join('\n')
  expect(parseProfile(report)).toEqual({
    listSearchKey: 0.5025,
    kernel: 0.3,
    pthread_mutex_trylock: 0.02,
    '0x00000000000418c1': 0.0025,
  })
  expect(parseProfile('# Total Lost Samples: 0\n')).toBeNull()
})
