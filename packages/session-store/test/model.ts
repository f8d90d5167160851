import { KEPT_VIEWS } from '../src/views/record.ts'

/** A model of the store with plain maps. Times are milliseconds since 1970. */
export class Model {
  readonly login = new Map<string, string>()
  readonly recent = new Map<string, number>()
  readonly viewed = new Map<string, Map<string, number>>()
  readonly views = new Map<string, number>()
  readonly data = new Map<string, { fields: Map<string, unknown>; version: number }>()

  writeSession(token: string, user: string, item: string | undefined, now: number): void {
    this.login.set(token, user)
    this.recent.set(token, now)
    if (item !== undefined) this.#view(token, item, now)
  }

  recordView(token: string, item: string, now: number) {
    const user = this.login.get(token)
    if (user === undefined) return 'ONETRIP_UNKNOWN_SESSION'
    this.recent.set(token, now)
    this.#view(token, item, now)
    return { user, views: this.views.get(item) }
  }

  logout(token: string): boolean {
    this.recent.delete(token)
    this.viewed.delete(token)
    this.data.delete(token)
    return this.login.delete(token)
  }

  patch(
    token: string,
    fields: Record<string, unknown>,
    ifVersion: number | undefined,
    now: number,
  ) {
    if (!this.login.has(token)) return 'ONETRIP_UNKNOWN_SESSION'
    const data = this.data.get(token) ?? { fields: new Map(), version: 0 }
    if (ifVersion !== undefined && ifVersion !== data.version) return 'ONETRIP_CONFLICT'
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined) data.fields.delete(name)
      else data.fields.set(name, JSON.parse(JSON.stringify(value)))
    }
    data.version++
    this.data.set(token, data)
    this.recent.set(token, now)
    return { version: data.version }
  }

  dataOf(token: string) {
    if (!this.login.has(token)) return 'ONETRIP_UNKNOWN_SESSION'
    const { fields, version } = this.data.get(token) ?? { fields: [], version: 0 }
    return { fields: Object.fromEntries(fields), version }
  }

  viewedItems(token: string) {
    return [...(this.viewed.get(token) ?? [])]
      .map(([item, viewedAt]) => ({ item, viewedAt }))
      .sort((a, b) => b.viewedAt - a.viewedAt)
  }

  #view(token: string, item: string, now: number): void {
    const views = this.viewed.get(token) ?? new Map<string, number>()
    views.set(item, now)
    const oldest = [...views].sort(([, a], [, b]) => a - b)
    for (const [name] of oldest.slice(0, Math.max(0, views.size - KEPT_VIEWS))) views.delete(name)
    this.viewed.set(token, views)
    this.views.set(item, (this.views.get(item) ?? 0) + 1)
  }
}
