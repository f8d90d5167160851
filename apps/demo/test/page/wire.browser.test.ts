import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import { describe, expect, test } from 'vitest'
import { duration } from '../../page/scripts/format.js'
import type { Wire } from '../../src/events.ts'
import { demoPagesOfThisFile } from './demo-page.ts'

describe.skipIf(!chromiumPath)('the wire diagram and the server panel', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('one click shows a page view of each lane as recorded by the relay', async () => {
    const demo = await browser.open(stack.url)
    const [answer] = await Promise.all([
      demo.page.waitForResponse('**/demo/wire'),
      demo.wire.getByRole('button', { name: 'Send one page view' }).click(),
    ])
    await demo
      .region('The server')
      .getByText(/patched-/)
      .waitFor()
    await demo
      .region('The server')
      .getByText(/0002 inherit socket options from the listener/)
      .waitFor()
    const { lanes } = (await answer.json()) as { lanes: [Wire, Wire] }
    for (const { strategy, http, exchanges } of lanes) {
      const lane = demo.wire.getByRole('figure', { name: new RegExp(`^${strategy} `) })
      await lane.getByRole('img', { name: `One page view through ${strategy}` }).waitFor()
      expect(await lane.innerText()).toContain(duration(http.endUs))
      await lane.getByText('As text').click()
      const text = await lane.getByRole('list').innerText()
      for (const line of exchanges.flatMap(({ lines }) => lines)) expect(text).toContain(line)
    }
    const [naive, batch] = lanes
    expect([naive.connections, batch.connections]).toEqual([1, 0])
    expect(batch.roundTrips).toBe(1)
    // The drawing at the top has as many as its caption says. A busy machine may split the handshake.
    const slow = demo.page.locator('.slow')
    expect(await slow.innerText()).toContain('8 round trips')
    expect((await slow.innerHTML()).match(/l25 64 25-64/g)).toHaveLength(8)
    expect(naive.roundTrips).toBeGreaterThanOrEqual(8)
  })
})
