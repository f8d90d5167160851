import type { Outcome } from './client.ts'

/** A session of the load. */
export interface Viewer {
  readonly user: string
  readonly token: string
  /** The session's id in Redis. */
  readonly id: string
}

/** A view, from the perspective of its client. */
export interface View {
  readonly viewer: Viewer
  readonly item: string
  readonly outcome: Outcome
  /** `200`, or the code of the error or of the broken connection. */
  readonly answer: string
  readonly milliseconds: number
}

export interface Count {
  acknowledged: number
  unknown: number
}

/** The items that a session has certainly viewed, and those that it may have viewed. */
export interface Viewed {
  readonly acknowledged: Set<string>
  readonly unknown: Set<string>
}

/** The clients' knowledge of their views and sessions. Its size depends only on items and sessions. */
export class Ledger {
  readonly items = new Map<string, Count>()
  /** The sessions that must exist. */
  readonly sessions = new Map<Viewer, Viewed>()
  /** Ids of sessions that must have ended. */
  readonly ended = new Set<string>()
  /** Number of further sessions that may exist: logins and logouts with an unknown outcome. */
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

  /** Records a session that must exist from now on. */
  begin(viewer: Viewer): Viewed {
    const viewed = this.sessions.get(viewer) ?? { acknowledged: new Set(), unknown: new Set() }
    this.sessions.set(viewer, viewed)
    return viewed
  }

  /** Records a logout. The views of the session still count. */
  end(viewer: Viewer, outcome: Outcome): void {
    if (outcome === 'not written') return
    this.sessions.delete(viewer)
    if (outcome === 'acknowledged') this.ended.add(viewer.id)
    else this.uncertain += 1
  }
}
