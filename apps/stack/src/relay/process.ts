import { fileURLToPath } from 'node:url'
import { type Program, ProgramError, startProgram } from '../program.ts'

const relayProgram = fileURLToPath(new URL('../relay.ts', import.meta.url))

export interface RelayProcessOptions {
  /** `host:port` or the path of a Unix socket. Default: any free port of 127.0.0.1. */
  listen?: string
  /** Likewise, of the server. */
  to: string
  /** Such as `0.271ms`. Default 0. */
  roundTrip?: string
  /** Such as `1Gb/s`. Default unlimited. */
  bandwidth?: string
  /** Gives the start up. */
  signal?: AbortSignal
}

/** A line that the relay printed: what happened, and its details. */
interface RelayEvent {
  event: string
  [detail: string]: unknown
}

/** A relay that runs as a process of its own, and ends with this one. */
export interface RelayProcess {
  readonly program: Program
  /** Where it listens, as `listen` is written. */
  readonly address: string
  /** Gives it a command (see `--help`), and resolves with its answer. One at a time. */
  command(line: string): Promise<RelayEvent>
  /** Resolves when it tells of the next event of this kind. */
  event(kind: string): Promise<RelayEvent>
  stop(): Promise<void>
}

/** @throws ProgramError when it does not start; the reason of `signal`. */
export async function startRelay(options: RelayProcessOptions): Promise<RelayProcess> {
  const { listen = '127.0.0.1:0', to, roundTrip, bandwidth, signal } = options
  const waiting = new Set<{ kinds: readonly string[]; told: PromiseWithResolvers<RelayEvent> }>()
  let address = listen
  const next = (...kinds: string[]) => {
    const told = Promise.withResolvers<RelayEvent>()
    told.promise.catch(() => {}) // a wait that nobody looks at is no error
    waiting.add({ kinds, told })
    void program.exited.then(() => told.reject(new ProgramError('the relay has ended')))
    return told.promise
  }
  const program: Program = await startProgram({
    name: 'the relay',
    command: process.execPath,
    args: [
      relayProgram,
      ...['--listen', listen, '--to', to],
      ...(roundTrip === undefined ? [] : ['--round-trip', roundTrip]),
      ...(bandwidth === undefined ? [] : ['--bandwidth', bandwidth]),
    ],
    input: true,
    ready: /"event":"listening"/,
    onLine(line) {
      const event = line.startsWith('{') ? (JSON.parse(line) as RelayEvent) : undefined
      if (event?.event === 'listening') address = String(event.address)
      if (!event) return
      for (const wait of waiting) {
        if (!wait.kinds.includes(event.event)) continue
        waiting.delete(wait)
        wait.told.resolve(event)
      }
    },
    ...(signal && { signal }),
  })
  return {
    program,
    address,
    command(line) {
      const answer = next('cut', 'stalled', 'resumed', 'refused')
      program.write(line)
      return answer
    },
    event: (kind) => next(kind),
    stop: async () => void (await program.stop()),
  }
}
