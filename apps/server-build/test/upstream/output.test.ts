import { expect, test } from 'vitest'
import { parseInstances, parseRuntest } from '../../src/upstream/output.ts'

// Truncated output of upstream's suites (8.0.6).

test('parses passed tests, without their durations', () => {
  const output = `Cleanup: may take some time... OK
Starting test server at port 21079
[ready]: 24551
Testing unit/auth
[ok]: AUTH fails if there is no password configured server side (1 ms)
[ok]: SORT will complain with numerical sorting and bad doubles (1) (0 ms)
[1/1 done]: unit/auth (3 seconds)

                   The End

Execution time of different units:
  3 seconds - unit/auth

\\o/ All tests passed without errors!
`
  expect(parseRuntest(output)).toEqual({
    finished: true,
    tests: [
      { name: 'AUTH fails if there is no password configured server side', status: 'passed' },
      { name: 'SORT will complain with numerical sorting and bad doubles (1)', status: 'passed' },
    ],
  })
})

test('parses each failure once, with its message', () => {
  const output = `[ready]: 29181
Testing unit/other
[err]: Failing test in tests/unit/other.tcl
Expected 'ok' to equal or match 'err'
[skip]: Coverage: HELP commands
[ok]: PIPELINING stresser (also a regression for the old epoll bug) (296 ms)
[err]: Sanitizer error: AddressSanitizer: heap-use-after-free
[1/1 done]: unit/other (73 seconds)

                   The End

!!! WARNING The following tests failed:

*** [err]: Failing test in tests/unit/other.tcl
Expected 'ok' to equal or match 'err'
`
  expect(parseRuntest(output)).toEqual({
    finished: true,
    tests: [
      {
        name: 'Failing test',
        status: 'failed',
        detail: "Failing test in tests/unit/other.tcl\nExpected 'ok' to equal or match 'err'",
      },
      { name: 'Coverage: HELP commands', status: 'left-out' },
      {
        name: 'PIPELINING stresser (also a regression for the old epoll bug)',
        status: 'passed',
      },
      {
        name: 'Sanitizer error: AddressSanitizer: heap-use-after-free',
        status: 'failed',
        detail: 'Sanitizer error: AddressSanitizer: heap-use-after-free',
      },
    ],
  })
})

test('an exception ends the file: the running test failed, earlier results count', () => {
  const output = `[ok]: Test hostname validation (1 ms)
[exception]: Executing test client: invalid command name "build_cluster_bus_header".
invalid command name "build_cluster_bus_header"
    while executing
"build_cluster_bus_header $sender_name $sender_port"
    (procedure "test" line 59)
    invoked from within
"test "PING with hostname extension missing null terminator is rejected" {
    for {set j 0} {$j < [llength $::servers]} {incr j} {
        R $j config..."
    ("uplevel" body line 211)
Killing still running Redis server 27600
`
  const parsed = parseRuntest(output)
  expect(parsed.finished).toBe(false)
  expect(parsed.reason).toMatch(/^Executing test client: invalid command name/)
  expect(parsed.tests).toEqual([
    { name: 'Test hostname validation', status: 'passed' },
    {
      name: 'PING with hostname extension missing null terminator is rejected',
      status: 'failed',
      detail: parsed.reason,
    },
  ])
})

test('output without an end marker is not finished, and its last lines are the reason', () => {
  const parsed = parseRuntest('[ok]: one (1 ms)\nchild killed: SIGTERM\n')
  expect(parsed).toEqual({
    finished: false,
    reason: '[ok]: one (1 ms)\nchild killed: SIGTERM',
    tests: [{ name: 'one', status: 'passed' }],
  })
})

test('a runner that timed out is not finished', () => {
  const output = `[ok]: one (1 ms)
[TIMEOUT]: clients state report follows.
sock55d1 => (IN PROGRESS) PSYNC2 stress

                   The End
`
  expect(parseRuntest(output)).toMatchObject({
    finished: false,
    reason: expect.stringContaining('(IN PROGRESS) PSYNC2 stress'),
  })
})

test('parses colours, text before a result, and names of several lines', () => {
  const output = `\x1b[1;37;49mTesting unit/sort\x1b[0m
  Average time to sort: 0.15 milliseconds [\x1b[0;32;49mok\x1b[0m]: SORT speed (15 ms)
[\x1b[0;32;49mok\x1b[0m]: first line
second line (2 ms)
[\x1b[0;36;49mignore\x1b[0m]: Big test: large memory flag not provided
[1/1 \x1b[0;33;49mdone\x1b[0m]: unit/sort (8 seconds)

                   The End
`
  expect(parseRuntest(output)).toEqual({
    finished: true,
    tests: [
      { name: 'SORT speed', status: 'passed' },
      { name: 'first line\nsecond line', status: 'passed' },
      { name: 'Big test: large memory flag not provided', status: 'left-out' },
    ],
  })
})

test('a test that ran several times has failed if it failed once', () => {
  const output = '[ok]: same (1 ms)\n[err]: same in tests/unit/a.tcl\nno\n[ok]: same (3 ms)\n'
  const { tests } = parseRuntest(`${output}[1/1 done]: unit/a (1 seconds)\n\n       The End\n`)
  expect(tests).toEqual([
    { name: 'same', status: 'failed', detail: 'same in tests/unit/a.tcl\nno' },
  ])
})

test('parses the suites cluster and sentinel', () => {
  const output = `Starting redis #0 at port 30000
Testing unit: 02-failover.tcl
07:07:21> (init) Restart killed instances: OK
07:07:21> Killing one master node: Waiting for process 28002 to exit...
OK
07:07:29> RESP: one colon more: OK
07:07:33> Instance #5 is now a master: FAILED: Instance #5 is not a master
(Jumping to next unit after error)
Cleaning up...
killing stale instance 28002
WARNING 1 test(s) failed.
`
  expect(parseInstances(output)).toEqual({
    finished: true,
    tests: [
      { name: '(init) Restart killed instances', status: 'passed' },
      { name: 'Killing one master node', status: 'passed' },
      { name: 'RESP: one colon more', status: 'passed' },
      {
        name: 'Instance #5 is now a master',
        status: 'failed',
        detail: 'FAILED: Instance #5 is not a master',
      },
    ],
  })
})

test('a cluster suite that aborts in a test is not finished', () => {
  const output = `07:07:21> Cluster is up: OK
07:07:22> Cluster is writable: FAILED: caught an error in the test ERR no such command
ERR no such command
    while executing
"R 0 foo"
Cleaning up...
WARNING 1 test(s) failed.
`
  const { finished, reason, tests } = parseInstances(output)
  expect(finished).toBe(false)
  expect(reason).toContain('"R 0 foo"')
  expect(tests.map(({ name, status }) => `${name}: ${status}`)).toEqual([
    'Cluster is up: passed',
    'Cluster is writable: failed',
  ])
})

test('a cluster suite that cannot start is not finished', () => {
  const output = `Starting redis #0 at port 30000
WARNING: Aborting the test.
>>>>>>>> Problems starting redis #0: ping timeout, maybe server start failed
`
  expect(parseInstances(output)).toMatchObject({
    finished: false,
    reason: expect.stringContaining('ping timeout'),
    tests: [],
  })
})

test('errors of a cluster suite outside of its tests are failures', () => {
  const output = `07:07:21> Sentinel runs a script: OK
ERROR: Sentinel has leaked fds to scripts:
lrwx------ 1 root root 64 3 -> socket:[123]
----
*** Crash report found in redis_0/log.txt ***
REDIS BUG REPORT START: Cut & paste starting from here
WARNING 3 test(s) failed.
`
  expect(parseInstances(output).tests).toEqual([
    { name: 'Sentinel runs a script', status: 'passed' },
    {
      name: 'No descriptor is left to a script',
      status: 'failed',
      detail: expect.stringContaining('socket:[123]'),
    },
    {
      name: 'No server crashes',
      status: 'failed',
      detail: expect.stringContaining('REDIS BUG REPORT'),
    },
  ])
})
