import fc from 'fast-check'
import { expect, test } from 'vitest'
import { batching, type Command, type Outcome, StoreError } from '../src/index.ts'

/** A sender that replies with `outcomesOf`, and the commands of each of its round trips. */
function recording(outcomesOf: (commands: readonly Command[]) => Outcome[]) {
  const trips: (readonly Command[])[] = []
  const sender = batching({
    name: 'recording',
    async send({ commands }) {
      trips.push(commands)
      return outcomesOf(commands)
    },
    close: async () => {},
  })
  return { sender, trips }
}

test('the commands of an operation stay together, in the order of the calls', async () => {
  const command = fc.constantFrom<Command>(
    ['ZADD', 'recent:', 'XX', 1, 'a'],
    ['ZINCRBY', 'viewed:', -1, 'book'],
    ['HGET', 'login:', 'a'],
  )
  const list = fc.array(command, { maxLength: 3 }).map((commands) => ({ commands }))
  await fc.assert(
    fc.asyncProperty(fc.array(list, { minLength: 1, maxLength: 12 }), async (lists) => {
      // The outcome of each command is its position in the batch.
      const { sender, trips } = recording((commands) => commands.map((_, place) => place))
      const outcomes = await Promise.all(lists.map((list) => sender.send(list)))
      expect(trips).toEqual([lists.flatMap(({ commands }) => commands)])
      expect(outcomes.map(({ length }) => length)).toEqual(
        lists.map(({ commands }) => commands.length),
      )
      expect(outcomes.flat()).toEqual(trips[0]?.map((_, place) => place))
    }),
  )
})

test('a sender that stops at a command that it did not send has not sent those of later callers', async () => {
  const unsent = new StoreError('ONETRIP_NOT_SENT', 'no connection')
  const { sender } = recording(() => ['PONG', unsent])
  const ping = { commands: [['PING'] as const] }
  expect(await Promise.all([ping, ping, ping].map((list) => sender.send(list)))).toEqual([
    ['PONG'],
    [unsent],
    [unsent],
  ])
})
