import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError } from '../problem.ts'
import { startProgram } from '../program.ts'

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

/** A line that the relay printed: `event` says what happened, and there are details. */
type RelayEvent = Record<string, unknown>

export type RelayProcess = Awaited<ReturnType<typeof startRelay>>

/**
 * Starts a relay as a process of its own, which ends with this one.
 *
 * @throws ProgramError when it does not start; the reason of `signal`.
 */
export async function startRelay(options: RelayProcessOptions) {
  const { listen = '127.0.0.1:0', to, roundTrip = '0ms', bandwidth = 'unlimited' } = options
  const events = new EventEmitter<Record<string, [RelayEvent]>>()
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
      const event = JSON.parse(line)
      if (event.event === 'listening') address = event.address
      events.emit(event.event, event)
      if (event.event !== 'connection cut') events.emit('answer', event)
    },
    signal: options.signal,
  })
  const next = (kind: string): Promise<RelayEvent> => {
    const ended = program.exited.then(() => {
      throw new ProgramError('the relay has ended')
    })
    const event = Promise.race([once(events, kind).then(([event]) => event), ended])
    event.catch(() => {}) // an event that nobody waits for any more is no error
    return event
  }
  return {
    program,
    /** Where it listens, as `listen` is written. */
    address,
    /** Sends it a command (see `--help`) and resolves with its answer. One at a time. */
    command(line: string): Promise<RelayEvent> {
      const answer = next('answer')
      program.write(line)
      return answer
    },
    /** Resolves with the next event of this kind. */
    event: next,
    stop: async (): Promise<void> => void (await program.stop()),
  }
}
