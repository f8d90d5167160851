import { fstatSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Problem } from '../problem.ts'
import { print } from '../terminal.ts'
import { describeEndpoint } from './endpoint.ts'
import type { Way } from './link.ts'
import type { RelayFlags } from './options.ts'
import { Relay } from './relay.ts'
import { describeBandwidth } from './units.ts'

const tell = (event: string, details: object = {}) => print(JSON.stringify({ event, ...details }))

/**
 * Runs a relay until `signal` is aborted or standard input, if it leads anywhere, ends.
 *
 * @throws Problem when it cannot listen.
 */
export async function runRelay(flags: RelayFlags, signal: AbortSignal): Promise<void> {
  const relay = await listen(flags)
  const over = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => over.resolve())
  if (signal.aborted) over.resolve()
  if (leadsSomewhere(0)) {
    createInterface({ input: process.stdin })
      .on('line', (line) => obey(relay, line))
      .on('close', () => over.resolve())
  }
  tell('listening', {
    address: describeEndpoint(relay.endpoint),
    to: describeEndpoint(flags.to),
    roundTripMs: flags.roundTrip,
    bandwidth: describeBandwidth(flags.bandwidth),
  })
  await over.promise
  await relay.close()
  process.stdin.destroy() // which would keep the process
}

async function listen({ listen, to, roundTrip, bandwidth }: RelayFlags): Promise<Relay> {
  try {
    return await Relay.listen({
      listen,
      to,
      roundTripMs: roundTrip,
      bitsPerSecond: bandwidth,
      onCut: (withheld) => tell('connection cut', { withheld }),
    })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Problem(`The relay cannot listen at ${describeEndpoint(listen)}: ${why}`)
  }
}

/** Whether a descriptor is a pipe or a terminal, unlike /dev/null or a file. */
function leadsSomewhere(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor)
    return stat.isFIFO() || stat.isSocket() || process.stdin.isTTY
  } catch {
    return false // it is closed
  }
}

const CUT = /^cut(?: (requests|replies) (\d{1,15}))?$/

function obey(relay: Relay, line: string): void {
  const command = line.trim().replaceAll(/\s+/g, ' ')
  const cut = CUT.exec(command)
  if (cut) {
    const way: Way = cut[1] === 'requests' ? 'requests' : 'replies'
    const bytes = Number(cut[2] ?? 0)
    tell('cut', { connections: relay.connections, way, bytes })
    relay.cut(way, bytes)
  } else if (command === 'stall') {
    relay.stall()
    tell('stalled')
  } else if (command === 'resume') {
    relay.resume()
    tell('resumed')
  } else if (command !== '') {
    tell('refused', { command, known: 'cut, cut replies N, cut requests N, stall, resume' })
  }
}
