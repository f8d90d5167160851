import type { Keys } from '../core/keys.ts'

/** Additional keys during a migration. */
interface MigrationKeys {
  /** Hash in the source: session id → its records, while the session is in neither store. */
  moving(id: string): string
  /** Hash in the target: ids of the sessions that have arrived. An empty field: the migration is finished. */
  moved(id: string): string
  /** Hash in the target: item → views already copied from the source. An empty field: finished. */
  ledger(item: string): string
  allMoving(): readonly string[]
  allMoved(): readonly string[]
  allLedgers(): readonly string[]
}

/** Each key is in the slot of its sessions or item counts. */
export function migrationKeys(keys: Keys): MigrationKeys {
  const moving = (login: string) => `${login}:moving`
  const moved = (login: string) => `${login}:moved`
  const ledger = (popular: string) => `${popular}:ledger` // no session has the id `ledger`
  const logins = keys.parts().map(({ login }) => login)
  return {
    moving: (id) => moving(keys.login(id)),
    moved: (id) => moved(keys.login(id)),
    ledger: (item) => ledger(keys.popular(item)),
    allMoving: () => logins.map(moving),
    allMoved: () => logins.map(moved),
    allLedgers: () => keys.allPopular().map(ledger),
  }
}
