import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ProgramError } from '../problem.ts'
import { startProgram } from '../program.ts'

/** The relay as a program. */
export const relayProgram = fileURLToPath(new URL('../relay.ts', import.meta.url))

export interface RelayProcessOptions {
  /** `host:port` or the path of a Unix socket. Default: a free port of 127.0.0.1. */
  listen?: string
  /** Address of the server, in the same format. */
  to: string
  /** Such as `0.271ms`. Default `0ms`. */
  roundTrip?: string
  /** Such as `1Gb/s`. Default `unlimited`. */
  bandwidth?: string
  /** Cancels the start. */
  signal?: AbortSignal
}

/** A line of the relay's output: the name of the event (`event`) and details. */
type RelayEvent = Record<string, unknown>

export type RelayProcess = Awaited<ReturnType<typeof startRelay>>

/**
 * Starts a relay as a separate process, which exits with this one.
 *
 * @throws ProgramError if it does not start; the reason of `signal`.
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
    event.catch(() => {}) // the caller may no longer wait for the event
    return event
  }
  return {
    program,
    /** The address on which it listens, in the format of `listen`. */
    address,
    /** Sends a command (see `--help`) and resolves with the answer. Calls must not overlap. */
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
