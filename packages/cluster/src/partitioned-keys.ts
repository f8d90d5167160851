import { articleKeys, type Keys, type Operation, StoreError } from '@onetrip/session-store'
import { SLOTS } from './slots.ts'

/**
 * Key names for Redis Cluster. Sessions and item counts are spread over `partitions`. The keys of one partition
 * share a hash tag, so that they are on one node. All processes must use the same number, and it cannot change
 * while there is data: `ready` of the store compares it with that of the first start.
 *
 * @param partitions 1 to 16,384. Default 64; docs/scaling.md explains when to use more.
 * @throws TypeError for any other number.
 */
export function partitionedKeys(partitions = 64): Keys {
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > SLOTS) {
    throw new TypeError(`partitions must be a whole number from 1 to ${SLOTS}`)
  }
  const tags = Array.from({ length: partitions }, (_, index) => `{${index}}`)
  let lastName: string | undefined
  let lastTag = ''
  /** Remembers the last result, because an operation asks for several keys of one session. */
  function tagOf(name: string): string {
    if (name !== lastName) {
      lastName = name
      lastTag = tags[fnv1a(name) % partitions] as string
    }
    return lastTag
  }
  const [login, recent, popular] = [
    articleKeys.login(''),
    articleKeys.recent(''),
    articleKeys.popular(''),
  ]
  const parts = tags.map((tag) => ({ login: login + tag, recent: recent + tag }))
  const allPopular = tags.map((tag) => popular + tag)
  const tagged = (name: string) => `${tagOf(name)}:${name}`
  return {
    ...articleKeys,
    login: (id) => login + tagOf(id),
    recent: (id) => recent + tagOf(id),
    viewed: (id) => articleKeys.viewed(tagged(id)),
    data: (id) => articleKeys.data(tagged(id)),
    popular: (item) => popular + tagOf(item),
    once: (item, hash) => articleKeys.once(item, `${tagOf(item)}:${hash}`),
    parts: () => parts,
    allPopular: () => allPopular,
    find(kind) {
      const found = articleKeys.find(kind)
      if (kind === 'sessions') return found
      const ownerOf = (key: string) => {
        const owner = found.ownerOf(key)
        const name = owner?.slice(owner.indexOf(':') + 1)
        return name && tagged(name) === owner ? name : undefined
      }
      return { pattern: found.pattern.replace('?*', '{*}:?*'), ownerOf }
    },
    check: (keys) => sameNumber(keys, String(partitions)),
  }
}

/** Field of `janitorTasks`: the number of partitions of the first start. */
const PARTITIONS = 'partitions'

/**
 * Records the number of partitions, unless one is recorded. A process with another number would look for sessions and
 * counts under the wrong keys. `read` throws ONETRIP_INVALID_INPUT if the numbers differ. Keys: janitorTasks.
 */
function sameNumber(keys: Keys, own: string): Operation<void> {
  const key = keys.janitorTasks()
  return {
    commands: [
      ['HSETNX', key, PARTITIONS, own],
      ['HGET', key, PARTITIONS],
    ],
    readOnly: false,
    read([, recorded]) {
      if (recorded === own) return
      throw new StoreError(
        'ONETRIP_INVALID_INPUT',
        `this process is set to ${own} partitions, but the first start recorded ${recorded} (field ${PARTITIONS} of ${key}): set ${recorded} in every process, as partitions: ${recorded} or REDIS_PARTITIONS=${recorded}; if the first start had the wrong number, stop all processes with that number, run HDEL ${key} ${PARTITIONS}, and start with the right number`,
      )
    },
  }
}

/** The hash FNV-1a over UTF-16 units: cheap, and stable across processes and releases. */
function fnv1a(name: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < name.length; index++) {
    value = Math.imul(value ^ name.charCodeAt(index), 0x01000193)
  }
  return value >>> 0
}
