import { type Case, during, isMissing, times } from '../case.ts'

const fieldsOf = (body: Record<string, unknown>) => (body.fields ?? {}) as Record<string, unknown>

/** Sets each of the pairs, and counts those that the session then has. */
const kept =
  (pairs: readonly [field: string, value: unknown][]): Case['run'] =>
  async ({ loggedIn }) => {
    const browser = await loggedIn()
    let held = 0
    for (const [field, value] of pairs) {
      const answer = await browser.send('/set', { field, value })
      if (isMissing(answer)) return null
      const found = fieldsOf((await browser.send('/me')).body)
      const has =
        Object.hasOwn(found, field) && JSON.stringify(found[field]) === JSON.stringify(value)
      // A clear refusal loses nothing: the caller knows.
      if (has || (answer.status >= 400 && answer.status < 500)) held++
    }
    return { held, of: pairs.length }
  }

export const changeCases: Case[] = [
  {
    name: '50 parallel requests that change different fields: all changes are kept',
    async run({ loggedIn }) {
      const browser = await loggedIn()
      const set = (index: number) => browser.send('/set', { field: `f${index}`, value: index })
      if (isMissing(await set(0))) return null
      await Promise.all(Array.from({ length: 50 }, (_, index) => set(index)))
      const found = fieldsOf((await browser.send('/me')).body)
      return {
        held: Object.values(found).filter((value) => typeof value === 'number').length,
        of: 50,
      }
    },
  },
  {
    name: 'A slow request does not undo the change of a faster one',
    run: ({ loggedIn }) =>
      times(20, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const change = (field: string, value: unknown, hold?: string) =>
          browser.send('/set', { field, value }, hold)
        const slow = (hold: string) => change('slow', 1, hold)
        if (!(await during(slow, () => change('fast', 2)))) return null
        const found = fieldsOf((await browser.send('/me')).body)
        return found.slow === 1 && found.fast === 2
      }),
  },
  {
    name: 'A slow request does not bring back a field that a faster one removed',
    run: ({ loggedIn }) =>
      times(20, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        const change = (field: string, value: unknown, hold?: string) =>
          browser.send('/set', { field, value }, hold)
        await change('old', 1)
        const slow = (hold: string) => change('slow', 1, hold)
        if (!(await during(slow, () => change('old', null)))) return null
        return (fieldsOf((await browser.send('/me')).body).old ?? null) === null
      }),
  },
  {
    name: '20 parallel requests add 1 to one field: all are counted',
    async run({ loggedIn }) {
      const browser = await loggedIn()
      const add = () => browser.send('/increment', { field: 'count' })
      if (isMissing(await add())) return null
      await Promise.all(Array.from({ length: 19 }, add))
      return { held: Number(await browser.field('count')), of: 20 }
    },
  },
  {
    name: 'A read of the session returns what the request before it changed',
    run: ({ loggedIn }) =>
      times(50, async (trial) => {
        const browser = await loggedIn(`user${trial}`)
        if (isMissing(await browser.send('/set', { field: 'n', value: trial }))) return null
        return (await browser.field('n')) === trial
      }),
  },
  {
    name: 'Values of any kind are kept',
    run: kept([
      ['text', 'zażółć 🙂 \u2028 "quoted"'],
      ['nested', { a: [1, { b: [] }], c: '' }],
      ['number', 1e300],
      ['negative', -0.5],
      ['flag', false],
      ['list', []],
    ]),
  },
  {
    name: 'Fields of any name are kept, or refused with an error',
    run: kept(
      [
        'a b',
        'ключ',
        '🙂',
        'constructor',
        'toString',
        'a:b',
        '__proto__',
        'length',
        'x'.repeat(200),
      ].map((name) => [name, 1]),
    ),
  },
  {
    name: 'A field of 1 MB is kept, or refused with an error',
    run: kept([['large', 'x'.repeat(1_000_000)]]),
  },
]
