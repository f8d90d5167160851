import { channel } from 'node:diagnostics_channel'

/** One write of commands to Redis whose replies are then waited for. */
export interface RoundTrip {
  /** How many commands it carried. */
  commands: number
}

/** `onetrip:round-trip`: a message of type `RoundTrip` for every round trip of an update. */
export const roundTripChannel = channel('onetrip:round-trip')

/** `onetrip:connection`: a message for every connection to Redis that was opened. */
export const connectionChannel = channel('onetrip:connection')

export function publishRoundTrip(commands: number): void {
  if (roundTripChannel.hasSubscribers) roundTripChannel.publish({ commands } satisfies RoundTrip)
}

export function publishConnection(): void {
  if (connectionChannel.hasSubscribers) connectionChannel.publish({})
}
