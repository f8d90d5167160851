import { expect, test } from 'vitest'
import { timeWaitIn } from '../../src/experiments/ports/network.ts'
import { callAtRate, kindOf } from '../../src/experiments/ports/run.ts'

test('connections in TIME_WAIT are counted by the side whose port waits', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000
   1: 0100007F:1E61 0100007F:4E20 06 00000000:00000000
   2: 0100007F:4E21 0100007F:1E61 06 00000000:00000000
   3: 0100007F:4E22 0100007F:1E61 06 00000000:00000000
   4: 0100007F:4E23 0100007F:1E61 01 00000000:00000000
   5: 0100007F:4E24 0100007F:1E62 06 00000000:00000000`
  expect(timeWaitIn(table, 0x1e61)).toEqual({ all: 4, clients: 2, server: 1 })
})

test('an error has the code of the kernel', () => {
  const kernel = Object.assign(new Error('connect EADDRNOTAVAIL'), { code: 'EADDRNOTAVAIL' })
  expect(kindOf(new Error('not sent', { cause: kernel }))).toBe('EADDRNOTAVAIL')
  expect(kindOf(new Error('something else'))).toBe('something else')
})

test('calls begin at a steady rate, up to a maximum in flight', async () => {
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
