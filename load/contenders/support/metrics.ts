import { type RoundTrip, roundTripChannel } from '@onetrip/session-store'

/** The metrics that `npm run load` reads, for contenders with their own routes. */
export function processMetrics(facts: { strategy: string; transport: string }): () => string {
  let roundTrips = 0
  let commands = 0
  roundTripChannel.subscribe((message) => {
    roundTrips++
    commands += (message as RoundTrip).commands
  })
  return () => {
    const { user, system } = process.cpuUsage()
    const lines = [
      `process_cpu_seconds_total ${(user + system) / 1e6}`,
      `onetrip_info{strategy="${facts.strategy}",transport="${facts.transport}"} 1`,
      `onetrip_store_round_trips_total ${roundTrips}`,
      `onetrip_store_commands_total ${commands}`,
    ]
    return `${lines.join('\n')}\n`
  }
}
