import { type Keys, sameInAllLayouts, withoutTag } from '../keys.ts'

const MAX_PARTITIONS = 16_384 // the slots of a cluster

/**
 * Key names for Redis Cluster. Sessions and item counts are spread over `partitions`. The keys of one partition
 * share a hash tag, so that they are on one node. All processes must use the same number, and it cannot change
 * while there is data.
 *
 * @param partitions 1 to 16,384. Default 64; docs/scaling.md explains when to use more.
 * @throws TypeError for any other number.
 */
export function partitionedKeys(partitions = 64): Keys {
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > MAX_PARTITIONS) {
    throw new TypeError(`partitions must be a whole number from 1 to ${MAX_PARTITIONS}`)
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
  const parts = tags.map((tag) => ({ login: `login:${tag}`, recent: `recent:${tag}` }))
  const allPopular = tags.map((tag) => `viewed:${tag}`)
  const viewed = (id: string) => `viewed:${tagOf(id)}:${id}`
  const data = (id: string) => `data:${tagOf(id)}:${id}`
  const idIn = (key: string, keyOf: (id: string) => string) => {
    const id = /^\w+:\{\d+\}:(.+)$/s.exec(key)?.[1]
    return id !== undefined && keyOf(id) === key ? id : undefined
  }
  return {
    login: (id) => `login:${tagOf(id)}`,
    recent: (id) => `recent:${tagOf(id)}`,
    viewed,
    data,
    popular: (item) => `viewed:${tagOf(item)}`,
    once: (item, hash) => `once:${tagOf(item)}:${hash}`,
    ...sameInAllLayouts,
    janitor: () => 'janitor:lock',
    janitorTasks: () => 'janitor:tasks',
    parts: () => parts,
    allPopular: () => allPopular,
    find: (kind) =>
      kind === 'sessions'
        ? withoutTag(kind)
        : {
            pattern: `${kind}:{*}:?*`,
            ownerOf: (key) => idIn(key, kind === 'data' ? data : viewed),
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
