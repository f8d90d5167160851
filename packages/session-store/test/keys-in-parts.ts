import { articleKeys, type Keys } from '../src/index.ts'

/** A layout for several servers: the sessions and items are in `count` parts. */
export function keysInParts(count: number): Keys {
  const partOf = (name: string) =>
    `{${Buffer.from(name).reduce((sum, byte) => sum + byte, 0) % count}}`
  const tagged = (name: string) => `${partOf(name)}:${name}`
  const all = Array.from({ length: count }, (_, part) => `{${part}}`)
  const { login, recent, popular } = articleKeys
  return {
    ...articleKeys,
    login: (id) => login(id) + partOf(id),
    recent: (id) => recent(id) + partOf(id),
    viewed: (id) => articleKeys.viewed(tagged(id)),
    data: (id) => articleKeys.data(tagged(id)),
    popular: (item) => popular(item) + partOf(item),
    once: (item, hash) => articleKeys.once(item, `${partOf(item)}:${hash}`),
    parts: () => all.map((part) => ({ login: login('') + part, recent: recent('') + part })),
    allPopular: () => all.map((part) => popular('') + part),
    find(kind) {
      const found = articleKeys.find(kind)
      if (kind === 'sessions') return found
      const ownerOf = (key: string) => {
        const owner = found.ownerOf(key)
        const name = owner?.slice(owner.indexOf(':') + 1)
        return name && tagged(name) === owner ? name : undefined
      }
      return { ...found, ownerOf }
    },
  }
}
