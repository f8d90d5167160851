import type { Command, Operation } from '../command.ts'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../redis/runner.ts'

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
const foreignKey = (keys: Keys): Operation<string | undefined> => {
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

/**
 * Checks the types of the keys that all sessions share: login, recent and the item counts of all parts. Another
 * program may use the same names. One round trip.
 *
 * Does nothing if they cannot be read: a process must be able to start while a node of a cluster is down, or with
 * permissions that lack TYPE.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` that names a key of another type.
 */
export async function checkKeyTypes({
  runner,
  keys,
}: {
  runner: Pick<Runner, 'run'>
  keys: Keys
}): Promise<void> {
  const wrong = await runner.run(foreignKey(keys)).catch(() => undefined)
  if (wrong === undefined) return
  throw new StoreError(
    'ONETRIP_INVALID_INPUT',
    `${wrong}: another program uses this database. Use another database, or the option prefix`,
  )
}
