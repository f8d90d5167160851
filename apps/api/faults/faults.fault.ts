import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { View } from '@onetrip/stack/testing/audit/ledger.ts'
import { expect, onTestFinished, test } from 'vitest'
import { answered, startTestbed, type Testbed } from './testbed.ts'

const acknowledged = answered('200')
const answers = (views: readonly View[]) => views.map(({ answer }) => answer)

test.each(['batch', 'pipeline', 'naive'])(
  '%s: Redis is killed under load and restarted',
  async (strategy) => {
    const { redis, viewing, settle } = await startTestbed({ strategy })
    redis.program.signal('SIGKILL')
    await viewing.next(answered('ONETRIP_NOT_SENT'))
    await redis.restart()
    await viewing.next(acknowledged)
    await settle()
  },
)

test('Redis is stopped for five seconds and continued', async () => {
  const { redis, viewing, settle } = await startTestbed()
  redis.program.signal('SIGSTOP')
  const stopped = Date.now()
  await viewing.next(answered('ONETRIP_OUTCOME_UNKNOWN'))
  await viewing.next(() => Date.now() - stopped >= 5_000)
  redis.program.signal('SIGCONT')
  await viewing.next(acknowledged)
  await settle()
})

test('Redis is out of memory for some time', async () => {
  const { admin, viewing, settle } = await startTestbed()
  await admin.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '1')
  await viewing.next(
    ({ answer, outcome }) => answer === 'ONETRIP_REFUSED' && outcome === 'not written',
  )
  await admin.config('SET', 'maxmemory', '0')
  await settle()
})

/** Opens connections until Redis rejects one. */
async function fill(path: string): Promise<Socket[]> {
  const sockets: Socket[] = []
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (;;) {
    const socket = connect(path)
    sockets.push(socket)
    socket.on('error', () => {})
    socket.write('PING\r\n')
    // Redis may close a rejected connection during the write.
    const [reply] = await once(socket, 'data').catch(() => [])
    if (!String(reply).startsWith('+PONG')) return sockets
  }
}

test('Redis is at maxclients: the pool keeps its connection, and recovers a lost one', async () => {
  const { redis, admin, viewing, connections, settle } = await startTestbed()
  await admin.config('SET', 'maxclients', '32')
  const others = await fill(redis.socket)
  await viewing.next(acknowledged)
  expect(answers(viewing.views)).not.toContain('ONETRIP_NOT_SENT')

  await admin.config('SET', 'maxclients', '16') // so that no connection becomes available
  await Promise.all((await connections()).map((id) => admin.client('KILL', 'ID', id)))
  await viewing.next(answered('ONETRIP_NOT_SENT'))
  for (const socket of others) socket.destroy()
  await settle()
})

test('naive: while Redis is at maxclients, no view is written', async () => {
  const { redis, admin, viewing, settle } = await startTestbed({ strategy: 'naive' })
  await admin.config('SET', 'maxclients', '80')
  const others = await fill(redis.socket)
  await admin.config('SET', 'maxclients', '40') // fewer than are connected
  await viewing.next(answered('ONETRIP_NOT_SENT'))
  for (const socket of others) socket.destroy()
  await settle()
})

test('Redis rejects one of the commands until it is allowed again', async () => {
  const { admin, viewing, settle } = await startTestbed()
  await admin.call('ACL', 'SETUSER', 'default', '-zincrby')
  const refused = await viewing.next(answered('ONETRIP_REFUSED'))
  expect(refused.outcome).toBe('unknown') // its other commands were executed
  await admin.call('ACL', 'SETUSER', 'default', '+@all')
  await settle()
})

/**
 * Cuts the connections to Redis after this number of bytes of replies. Repeats that until a reply was cut in
 * the middle and a view has lost its reply: a cut may also hit the end of a reply, or a connection without a
 * view.
 */
async function cutReply({ relay, viewing }: Testbed, bytes: number): Promise<void> {
  if (!relay) throw new Error('no relay')
  const before = viewing.views.length
  const viewLost = () => viewing.views.slice(before).some(({ outcome }) => outcome === 'unknown')
  let replyCut = false
  while (!replyCut || !viewLost()) {
    const cut = relay.event('connection cut').then(({ withheld }) => {
      replyCut ||= Number(withheld) > 0
    })
    await relay.command(`cut replies ${bytes}`)
    await Promise.race([cut, viewing.next(acknowledged)])
  }
  await viewing.next(acknowledged)
}

test('the connection is repeatedly cut in the middle of a reply', async () => {
  const testbed = await startTestbed({ relay: true })
  for (const bytes of [1, 7, 64, 333, 1_000]) await cutReply(testbed, bytes)
  await testbed.settle()
})

test('replies arrive after the deadline', async () => {
  const { relay, viewing, settle } = await startTestbed({ relay: true })
  for (let turn = 0; turn < 2; turn++) {
    await relay?.command('stall')
    await viewing.next(answered('ONETRIP_OUTCOME_UNKNOWN'))
    await relay?.command('resume')
    await viewing.next(acknowledged)
  }
  await settle()
})

test('the API is killed under load and restarted', async () => {
  const testbed = await startTestbed()
  testbed.api.signal('SIGKILL')
  await testbed.restartApi()
  await testbed.viewing.next(acknowledged)
  const views = await testbed.settle()
  expect(views.some(({ outcome }) => outcome !== 'acknowledged')).toBe(true)
})
