import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError } from '../problem.ts'
import { type Program, startProgram } from '../program.ts'

/** The relay as a program. */
export const relayProgram = fileURLToPath(new URL('../relay.ts', import.meta.url))

export interface RelayProcessOptions {
  /** `host:port` or the path of a Unix socket. Default: any free port of 127.0.0.1. */
  listen?: string
  /** Likewise, of the server. */
  to: string
  /** Such as `0.271ms`. Default `0ms`. */
  roundTrip?: string
  /** Such as `1Gb/s`. Default `unlimited`. */
  bandwidth?: string
  /** Cancels the start. */
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
  /** Sends it a command (see `--help`) and resolves with its answer. One at a time. */
  command(line: string): Promise<RelayEvent>
  /** Resolves with the next event of this kind. */
  event(kind: string): Promise<RelayEvent>
  stop(): Promise<void>
}

/** @throws ProgramError when it does not start; the reason of `signal`. */
export async function startRelay(options: RelayProcessOptions): Promise<RelayProcess> {
  const { listen = '127.0.0.1:0', to, roundTrip = '0ms', bandwidth = 'unlimited' } = options
  const events = new EventEmitter<Record<string, [RelayEvent]>>()
  const ended = new AbortController()
  let address = ''
  const program = await startProgram({
    name: 'the relay',
    command: process.execPath,
    args: [
      relayProgram,
      ...[`--listen=${listen}`, `--to=${to}`],
      ...[`--round-trip=${roundTrip}`, `--bandwidth=${bandwidth}`],
    ],
    input: true,
    ready: /"event":"listening"/,
    onLine(line) {
      if (!line.startsWith('{')) return
      const event: RelayEvent = JSON.parse(line)
      if (event.event === 'listening') address = String(event.address)
      events.emit(event.event, event)
      if (event.event !== 'connection cut') events.emit('answer', event)
    },
    signal: options.signal,
  })
  void program.exited.then(() => ended.abort())
  const next = (kind: string): Promise<RelayEvent> => {
    const event = once(events, kind, { signal: ended.signal }).then(
      ([event]) => event,
      () => Promise.reject(new ProgramError('the relay has ended')),
    )
    event.catch(() => {}) // an event that nobody waits for any more is no error
    return event
  }
  return {
    program,
    address,
    command(line) {
      const answer = next('answer')
      program.write(line)
      return answer
    },
    event: next,
    stop: async () => void (await program.stop()),
  }
}
