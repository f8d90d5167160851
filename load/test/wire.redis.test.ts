import { expect, test } from 'vitest'
import { drawing } from '../src/wire/drawing.ts'
import { recordViews } from '../src/wire/wire.ts'

test('the picture of the wire has connection, round trips and close of naive, and one trip of batch for two', async () => {
  const { signal } = new AbortController()
  const naive = await recordViews('naive', 1, signal)
  const batch = await recordViews('batch', 2, signal)
  const kinds = ({ exchanges }: typeof naive) => exchanges.map(({ kind }) => kind).join(' ')
  // HELLO and CLIENT SETINFO, INFO, five commands, QUIT.
  expect(kinds(naive)).toMatch(
    /^connect( send receive){7} (send close receive|send receive close)$/,
  )
  expect(kinds(batch)).toBe('send receive')
  expect(batch.exchanges[0]?.lines).toHaveLength(10)
  const svg = drawing([naive, batch])
  expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  expect(svg.match(/marker-end="url\(#blue\)"/g)).toHaveLength(10)
  expect(svg).toContain('>10 commands<')
})
