import type { Command, Operation } from '../command.ts'
import type { Keys } from '../keys.ts'

const NO_KEY = 'none'
const HASH = 'hash'
const SORTED_SET = 'zset'

/** The keys that all sessions share, each with its type. */
const sharedKeys = (keys: Keys): [key: string, type: string][] => [
  ...keys.parts().flatMap(({ login, recent }): [string, string][] => [
    [login, HASH],
    [recent, SORTED_SET],
  ]),
  ...keys.allPopular().map((key): [string, string] => [key, SORTED_SET]),
]

const nameOf = (type: string) => (type === SORTED_SET ? 'sorted set' : type)

/** An error text about the first shared key with a wrong type; undefined if all types are right. */
export const foreignKey = (keys: Keys): Operation<string | undefined> => {
  const shared = sharedKeys(keys)
  return {
    commands: shared.map(([key]): Command => ['TYPE', key]),
    readOnly: true,
    read(types) {
      const place = shared.findIndex(
        ([, wanted], index) => types[index] !== NO_KEY && types[index] !== wanted,
      )
      const [key, wanted] = shared[place] ?? []
      if (key === undefined || wanted === undefined) return undefined
      const found = nameOf(String(types[place]))
      return `the key ${key} is a ${found}, but the store needs a ${nameOf(wanted)}`
    },
  }
}
