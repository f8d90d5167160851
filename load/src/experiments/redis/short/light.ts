import { once } from 'node:events'
import { createConnection } from 'node:net'
import { quantile } from 'simple-statistics'
import { cpuDuring, measureLoad, microsPer } from '../../../drivers/redis/cost.ts'
import { generateLoad, type LoadOptions } from '../../../drivers/redis/generator/load.ts'
import { encode } from '../../../drivers/redis/raw-connection.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { type Case, type Measured, product } from '../../../rounds/shape.ts'

/** Clients of the load `burst`, which connect at the same moment. */
const BURST = 10
const BURSTS_PER_SECOND = 10
/** Another client runs this command again and again. */
const SLOW = ['DEBUG', 'SLEEP', '0.01']

/** Loads that leave Redis idle most of the time, with the factors of their cases. */
const lightLoads = {
  rates: { clients: [1, 10, 50], rate: [50, 400, 1_000, 5_000] },
  burst: {},
  'half-close': {},
}

/** Concurrent connections, at most. */
export const LIGHT_CLIENTS = Math.max(...lightLoads.rates.clients)
/** A setting of Redis that `SLOW` needs. */
export const LIGHT_CONFIG = { 'enable-debug-command': 'local' }

export const lightCases = (load: keyof typeof lightLoads) =>
  product<Case>({ load: [load], ...lightLoads[load] })

/** Measures a case of `lightCases`. `short` has the target, the command and the end of its connections. */
export async function runLight(
  server: RedisServer,
  { load, clients, rate }: Case,
  short: LoadOptions & { target: { port: number } },
): Promise<Measured> {
  if (load === 'half-close') return await halfClose(server, short)
  if (load === 'rates') {
    return await measureLoad(server, { ...short, connections: Number(clients), rate: Number(rate) })
  }
  const bursts = { ...short, connections: BURST, rate: BURST * BURSTS_PER_SECOND }
  const slow = { ...short, mode: 'long', connections: 1, command: SLOW } as const
  const [{ latency, errors }] = await Promise.all([generateLoad(bursts), generateLoad(slow)])
  return { values: { ...latency }, errors }
}

/** Clients that shut down their sending side after a command, one after the other, and wait for the end. */
async function halfClose(
  server: RedisServer,
  { target, command, end: { seconds = 1 }, signal }: Parameters<typeof runLight>[2],
): Promise<Measured> {
  const request = encode(command)
  const times: number[] = []
  const end = performance.now() + seconds * 1_000
  const { cpu } = await cpuDuring(server, async () => {
    do {
      const socket = createConnection({ port: target.port, host: '127.0.0.1', allowHalfOpen: true })
      await once(socket, 'connect', { signal })
      socket.resume().write(request)
      await once(socket, 'data', { signal })
      const began = performance.now()
      socket.end()
      await once(socket, 'end', { signal })
      times.push(performance.now() - began)
      socket.destroy()
    } while (performance.now() < end && !signal.aborted)
  })
  const [p50 = null, p99 = null, max = null] = quantile(times, [0.5, 0.99, 1])
  return { values: { p50, p99, max, ...microsPer(cpu, times.length) } }
}
