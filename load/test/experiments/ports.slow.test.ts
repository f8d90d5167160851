import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'
import { namespaces } from '../support/namespaces.ts'
import { expectNothingLeft, runLoad } from '../support/run.ts'

const few = ['--ports=60', '--rate=200', '--duration=3']

test.skipIf(!namespaces)(
  'only a client that closes its connections runs out of ports',
  async () => {
    const args = [...few, '--cases=no-reuse,few-waiting,quit,pool']
    const { result } = await runExperiment('ports', args)
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
  await expectNothingLeft(state)
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
