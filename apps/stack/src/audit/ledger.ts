import type { Outcome } from './client.ts'

/** A session of the load. */
export interface Viewer {
  readonly user: string
  readonly token: string
  /** The session's id in Redis. */
  readonly id: string
}

/** A view as its client knows it. */
export interface View {
  readonly viewer: Viewer
  readonly item: string
  readonly outcome: Outcome
  /** `200`, the code of the error, or that of the broken connection. */
  readonly answer: string
  readonly milliseconds: number
}

export interface Count {
  acknowledged: number
  unknown: number
}

/** The items that a session has viewed for certain, and those that it may have viewed besides. */
export interface Viewed {
  readonly acknowledged: Set<string>
  readonly unknown: Set<string>
}

/** What clients know about their views and sessions, in memory that grows with items and sessions only. */
export class Ledger {
  readonly items = new Map<string, Count>()
  /** The sessions that must be there, by the viewer. */
  readonly sessions = new Map<Viewer, Viewed>()
  /** Ids of sessions that must be gone. */
  readonly ended = new Set<string>()
  /** How many sessions may be there besides: logins and logouts whose outcome is unknown. */
  uncertain = 0

  static of(views: Iterable<View>): Ledger {
    const ledger = new Ledger()
    for (const view of views) ledger.record(view)
    return ledger
  }

  record({ viewer, item, outcome }: Pick<View, 'viewer' | 'item' | 'outcome'>): void {
    const viewed = this.begin(viewer)
    const count = this.items.get(item) ?? { acknowledged: 0, unknown: 0 }
    this.items.set(item, count)
    if (outcome === 'not written') return
    count[outcome] += 1
    viewed[outcome].add(item)
  }

  /** A session that must be there from now on. */
  begin(viewer: Viewer): Viewed {
    const viewed = this.sessions.get(viewer) ?? { acknowledged: new Set(), unknown: new Set() }
    this.sessions.set(viewer, viewed)
    return viewed
  }

  /** A session that was logged out. Its views still count. */
  end(viewer: Viewer, outcome: Outcome): void {
    if (outcome === 'not written') return
    this.sessions.delete(viewer)
    if (outcome === 'acknowledged') this.ended.add(viewer.id)
    else this.uncertain += 1
  }
}
