import { type ClientRow, OWN_NAME } from './replies.ts'

/** Connections with the same name, library, address and user. */
export interface ClientGroup {
  /** `web (ioredis 6.0.0) at 10.0.0.7, user app` */
  label: string
  /** Most connections in one sample. */
  connections: number
  /** Connections that were opened and closed between the first sample and the last, as far as seen. */
  short: number
  /** Share of the connections seen that had sent something within the last second, 0 to 1. */
  active: number
  /** Commands between the first sample and the last; null where the server does not count them. */
  commands: number | null
  /** Most memory that replies to one connection took while they waited to be sent, in bytes. */
  outputBytes: number
  /** Last commands of its connections, the most frequent first. */
  lastCommands: string[]
}

interface Known {
  row: ClientRow
  /** Samples that had it. */
  sightings: number
  activeSightings: number
  firstCommands: number | null
  outputBytes: number
}

/** Gathers replies to CLIENT LIST. Replicas, the primary and the doctor itself are left out. */
export class Census {
  readonly #known = new Map<number, Known>()
  readonly #most = new Map<string, number>()
  readonly #lastCommands = new Map<string, number>()
  #lastIds = new Set<number>()
  #newestAtStart = Number.POSITIVE_INFINITY
  #samples = 0

  add(rows: readonly ClientRow[]): void {
    const clients = rows.filter(({ name, flags }) => name !== OWN_NAME && !/[SM]/.test(flags))
    if (this.#samples === 0) this.#newestAtStart = most(rows, ({ id }) => id)
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
      if (row.command === 'NULL') continue // it has not sent one yet
      const key = `${labelOf(row)}\n${row.command}`
      this.#lastCommands.set(key, (this.#lastCommands.get(key) ?? 0) + 1)
    }
    for (const [label, group] of Map.groupBy(clients, labelOf)) {
      this.#most.set(label, Math.max(this.#most.get(label) ?? 0, group.length))
    }
  }

  get samples(): number {
    return this.#samples
  }

  /** How many short connections were open at a time, on average. */
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
          connections: this.#most.get(label) ?? 0,
          short: all.filter((known) => short.has(known)).length,
          active: sum(all, (one) => one.activeSightings) / sum(all, (one) => one.sightings),
          commands: counted
            ? sum(all, ({ row, firstCommands }) => (row.commands ?? 0) - (firstCommands ?? 0))
            : null,
          outputBytes: most(all, ({ outputBytes }) => outputBytes),
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

/** The largest value, or 0. `Math.max(...)` cannot take a hundred thousand. */
const most = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((largest, one) => Math.max(largest, of(one)), 0)

function labelOf({ name, library, host, user }: ClientRow): string {
  const who = [name || 'a client without a name', library && `(${library})`]
    .filter(Boolean)
    .join(' ')
  return `${who} ${host === 'Unix socket' ? 'on a Unix socket' : `at ${host}`}, user ${user || 'unknown'}`
}
