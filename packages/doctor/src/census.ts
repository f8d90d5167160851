import { type ClientRow, OWN_NAME } from './replies.ts'

/** Connections with the same name, library, address and user. */
export interface ClientGroup {
  /** `web (ioredis 6.0.0) at 10.0.0.7, user app` */
  label: string
  /** The largest number of connections in one sample. */
  connections: number
  /** Sampled connections that were opened after the first sample and closed before the last. */
  short: number
  /** Share of the sampled connections that had sent something within the last second, 0 to 1. */
  active: number
  /** Commands between the first and the last sample; null if the server does not count them. */
  commands: number | null
  /** The largest output buffer of one connection, in bytes. */
  outputBytes: number
  /** The last commands of its connections, the most frequent first. */
  lastCommands: string[]
}

/** One connection over all samples. */
interface Known {
  row: ClientRow
  /** The number of samples with this connection. */
  sightings: number
  activeSightings: number
  firstCommands: number | null
  outputBytes: number
}

/** Collects replies to CLIENT LIST, without replicas, the primary and the doctor's own connection. */
export class Census {
  readonly #known = new Map<number, Known>()
  readonly #maxConnections = new Map<string, number>()
  readonly #lastCommands = new Map<string, number>()
  #lastIds = new Set<number>()
  #newestAtStart = Number.POSITIVE_INFINITY
  #samples = 0

  add(rows: readonly ClientRow[]): void {
    const clients = rows.filter(({ name, flags }) => name !== OWN_NAME && !/[SM]/.test(flags))
    if (this.#samples === 0) this.#newestAtStart = maxOf(rows, ({ id }) => id)
    this.#samples += 1
    this.#lastIds = new Set(clients.map(({ id }) => id))
    for (const row of clients) {
      const known = this.#known.get(row.id)
      this.#known.set(row.id, {
        row,
        sightings: (known?.sightings ?? 0) + 1,
        activeSightings: (known?.activeSightings ?? 0) + Number(row.idleSeconds === 0),
        firstCommands: known ? known.firstCommands : this.#samples === 1 ? row.commands : 0,
        outputBytes: Math.max(known?.outputBytes ?? 0, row.outputBytes),
      })
      if (row.command === 'NULL') continue // no command yet
      const key = `${labelOf(row)}\n${row.command}`
      this.#lastCommands.set(key, (this.#lastCommands.get(key) ?? 0) + 1)
    }
    for (const [label, group] of Map.groupBy(clients, labelOf)) {
      this.#maxConnections.set(label, Math.max(this.#maxConnections.get(label) ?? 0, group.length))
    }
  }

  get samples(): number {
    return this.#samples
  }

  /** The average number of short connections that are open at the same time. */
  get shortOpen(): number {
    const sightings = this.#short().reduce((sum, known) => sum + known.sightings, 0)
    return sightings / Math.max(1, this.#samples)
  }

  /** The groups with the most short connections first, then those with the most connections. */
  groups(): ClientGroup[] {
    const short = new Set(this.#short())
    const groups = [...Map.groupBy(this.#known.values(), ({ row }) => labelOf(row))]
    const sum = (all: readonly Known[], of: (known: Known) => number) =>
      all.reduce((total, known) => total + of(known), 0)
    return groups
      .map(([label, all]): ClientGroup => {
        const counted = all.every(({ row }) => row.commands !== null)
        return {
          label,
          connections: this.#maxConnections.get(label) ?? 0,
          short: all.filter((known) => short.has(known)).length,
          active: sum(all, (one) => one.activeSightings) / sum(all, (one) => one.sightings),
          commands: counted
            ? sum(all, ({ row, firstCommands }) => (row.commands ?? 0) - (firstCommands ?? 0))
            : null,
          outputBytes: maxOf(all, ({ outputBytes }) => outputBytes),
          lastCommands: this.#commandsOf(label),
        }
      })
      .toSorted((a, b) => b.short - a.short || b.connections - a.connections)
  }

  #short(): Known[] {
    return [...this.#known.values()].filter(
      ({ row: { id } }) => id > this.#newestAtStart && !this.#lastIds.has(id),
    )
  }

  #commandsOf(label: string): string[] {
    return [...this.#lastCommands]
      .filter(([key]) => key.startsWith(`${label}\n`))
      .toSorted(([, a], [, b]) => b - a)
      .map(([key]) => key.slice(label.length + 1))
      .slice(0, 5)
  }
}

/** The largest value, or 0. `Math.max(...)` fails with 100,000 arguments. */
const maxOf = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((largest, one) => Math.max(largest, of(one)), 0)

function labelOf({ name, library, host, user }: ClientRow): string {
  const who = [name || 'a client without a name', library && `(${library})`]
    .filter(Boolean)
    .join(' ')
  return `${who} ${host === 'Unix socket' ? 'on a Unix socket' : `at ${host}`}, user ${user || 'unknown'}`
}
