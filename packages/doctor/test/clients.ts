import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'

// Inefficient clients, which run until the test ends. They pause between rounds, because tests share the cores.

/** Repeats some work until the test ends. */
export function untilTestEnds(work: () => Promise<unknown>): void {
  let stopping = false
  const working = (async () => {
    while (!stopping) {
      await work().catch(() => {}) // Redis may refuse it, or may have stopped
      await turn()
    }
  })()
  onTestFinished(async () => {
    stopping = true
    await working
  })
}

function kept(socket: string, name: string): Redis {
  const redis = new Redis(socket, { connectionName: name })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

/** Opens a connection for each command, with the commands that ioredis sends by default. */
export function reconnecting(socket: string, name: string): void {
  untilTestEnds(async () => {
    const redis = new Redis(socket, { connectionName: name, retryStrategy: () => null })
    redis.on('error', () => {})
    await redis.get('key').finally(() => redis.disconnect())
  })
}

/** Waits for the reply to each command. */
export function oneByOne(socket: string, name: string): void {
  const redis = kept(socket, name)
  untilTestEnds(() => redis.get('key'))
}

/** Sends GETs and does not read the replies. Resolves when they are sent. */
export async function unread(
  socket: string,
  name: string,
  key: string,
  times: number,
): Promise<void> {
  const client = connect(socket)
  client.on('error', () => {})
  onTestFinished(() => void client.destroy())
  client.pause()
  await once(client, 'connect')
  const gets = `GET ${key}\r\n`.repeat(times)
  const commands = `CLIENT SETNAME ${name}\r\n${gets}`
  await new Promise((resolve) => client.write(commands, resolve))
}
