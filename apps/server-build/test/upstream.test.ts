import { expect, test, vi } from 'vitest'
import { failuresIn, report } from '../faults/upstream.ts'

test.for([
  [
    `[ok]: DEL all keys (3 ms)
[err]: GETEX should not append to AOF in tests/integration/aof.tcl
Waiting for server[exception]: Executing test client: no such helper
\`[err]: Sanitizer error: leak
[err]: Sanitizer error: leak
                   The End
*** [err]: GETEX should not append to AOF in tests/integration/aof.tcl
`,
    'GETEX should not append to AOF',
    'Executing test client: no such helper',
    'Sanitizer error: leak',
  ],
  [
    `07:00:01> Cluster is up: OK
07:00:02> Failover (1): kill 1 2 FAILED: Expected 1
FAILED: caught an error in the test ERR
WARNING 2 test(s) failed.
`,
    'Failover (1)',
    'caught an error in the test ERR',
  ],
  ['[ok]: one (1 ms)\n  The End\n'],
  ['[ok]: one\nout of memory\n', 'The script did not reach its end: out of memory'],
])('finds the failed tests in %j, each once', ([output = '', ...names]) => {
  expect(failuresIn(output)).toEqual(names)
})

test('only failures that are not in the table count', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const known = [
    { test: 'one', why: 'a reason' },
    { test: 'Active defrag *', why: 'slow machine' },
  ]
  expect(report(['one', 'Active defrag big keys'], known)).toBe(true)
  expect(report(['one', 'one more'], known)).toBe(false)
  expect(write.mock.lastCall?.[0]).toContain('NEW FAILURE: one more\n2 failures, 1 of them new\n')
  write.mockRestore()
})
