import { spawnSync } from 'node:child_process'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { timeWaitIn } from '../../src/experiments/ports/network.ts'
import { callAtRate, kindOf } from '../../src/experiments/ports/run.ts'
import { runExperiment } from '../support/experiment.ts'
import { runLoad } from '../support/run.ts'

/** Whether this process may create a network namespace and change its settings. */
const namespaces =
  spawnSync('unshare', ['-n', 'sh', '-c', 'echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse']).status === 0

const few = ['--ports=60', '--rate=200', '--duration=1.5']

test.skipIf(!namespaces)(
  'only a client that closes its connections runs out of ports',
  async () => {
    const args = [...few, '--cases=no-reuse,few-waiting,quit,pool']
    const { text, result } = await runExperiment('ports', args)
    expect(text).toMatch(/^client closes(?: †)? +60 +0 +[\d.]+ % /m)
    expect(text).toContain('With a pool, ports do not run out.')
    expect(result.network).toBe('own namespace')
    const [closes, ...others] = result.samples
    expect(Object.keys(closes?.errors ?? {})).toEqual(['EADDRNOTAVAIL'])
    expect(closes?.values.views).toBeLessThanOrEqual(60)
    expect(closes?.values.lasted).toBeGreaterThan(0)
    expect(closes?.values.mostWaiting).toBeGreaterThan(50)
    expect(others.map(({ case: one }) => one.case)).toEqual(['few-waiting', 'quit', 'pool'])
    for (const { errors, values } of others) {
      expect(errors).toBeUndefined()
      expect(values).toMatchObject({ refused: 0, lasted: null, rateAfter: null })
      expect(values.views).toBeGreaterThan(60)
    }
    const [waiting, quit] = others
    expect(waiting?.values.mostWaiting).toBeLessThan(20)
    expect(quit?.values.waitingAtServer).toBeGreaterThan(0)
  },
)

test.skipIf(!namespaces)('Ctrl-C stops all programs and removes all files', async () => {
  const state = await temporaryFolder()
  const load = await runLoad({
    state,
    args: ['ports', '--ports=60', '--rate=100', '--cases=quit,pool', '--duration=0.5'],
    until: /^Round 1.*naive: QUIT, Redis closes/,
  })
  load.signal('SIGINT')
  expect(await load.exited).toEqual({ code: 130, signal: null })
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
})

test('fails with a message without a network namespace', async () => {
  const load = await runLoad({
    state: await temporaryFolder(),
    args: ['ports', ...few],
    env: { ONETRIP_NETWORK: 'shared' }, // as if no namespace could be created
    until: /needs its own network namespace, .* Run it as root/,
  })
  expect((await load.exited).code).toBe(1)
})

test('counts connections in TIME_WAIT by the side that closed', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000
   1: 0100007F:1E61 0100007F:4E20 06 00000000:00000000
   2: 0100007F:4E21 0100007F:1E61 06 00000000:00000000
   3: 0100007F:4E22 0100007F:1E61 06 00000000:00000000
   4: 0100007F:4E23 0100007F:1E61 01 00000000:00000000
   5: 0100007F:4E24 0100007F:1E62 06 00000000:00000000`
  expect(timeWaitIn(table, 0x1e61)).toEqual({ all: 4, clients: 2, server: 1 })
})

test('the kind of an error is the system error code', () => {
  const kernel = Object.assign(new Error('connect EADDRNOTAVAIL'), { code: 'EADDRNOTAVAIL' })
  expect(kindOf(new Error('not sent', { cause: kernel }))).toBe('EADDRNOTAVAIL')
  expect(kindOf(new Error('something else'))).toBe('something else')
})

test('starts calls at a constant rate, with a limit of calls in flight', async () => {
  let calls = 0
  const never = new AbortController().signal
  const pace = { perSecond: 500, seconds: 0.2, atOnce: 3, signal: never }
  await callAtRate(async () => void calls++, pace)
  expect(calls).toBeGreaterThan(3)
  expect(calls).toBeLessThanOrEqual(100)

  let open = 0
  let most = 0
  await callAtRate(async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setTimeout(resolve, 50))
    open--
  }, pace)
  expect(most).toBe(3)
})
