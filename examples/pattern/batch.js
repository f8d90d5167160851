// One open connection, and one round trip for all calls of an event-loop turn.
import { createHash, randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'

/** No command is sent twice, none waits for ever, and a connection that does not reply is replaced. */
const options = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 2_000,
  commandTimeout: 2_000,
  socketTimeout: 10_000,
}

export async function openSessions(url) {
  const redis = new Redis(url, options)
  redis.on('error', () => {}) // calls fail with the same error, and ioredis connects again
  await redis.connect()

  const queue = []
  const send = (commands) => {
    if (queue.length === 0) setImmediate(flush) // after the other requests of this turn
    const waiting = { commands, ...Promise.withResolvers() }
    queue.push(waiting)
    return waiting.promise
  }

  async function flush() {
    const waiting = queue.splice(0)
    try {
      const pipeline = redis.pipeline()
      for (const [name, ...args] of waiting.flatMap((one) => one.commands))
        pipeline.call(name, ...args)
      const results = (await pipeline.exec()) ?? []
      for (const { commands, resolve, reject } of waiting) {
        const own = results.splice(0, commands.length)
        // An error reaches only its own call: Redis has executed the commands of the others.
        const failed = own.find(([error]) => error !== null)
        if (failed) reject(failed[0])
        else resolve(own.map(([, reply]) => reply))
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error) // so that nobody waits for ever
    }
  }

  return { ...sessions(send), close: async () => void (await redis.quit()) }
}

// From here on, all four files are the same.

const LOGIN = 'pattern:login:' // hash: id → user
const RECENT = 'pattern:recent:' // sorted set: id → last seen, Unix seconds
const POPULAR = 'pattern:viewed:' // sorted set: item → minus the number of its views
const viewed = (id) => `pattern:viewed:${id}` // sorted set of a session: item → last view

/** Redis gets a hash of the token, so that nobody who reads Redis can use a session. */
const idOf = (token) => createHash('sha256').update(token).digest('base64url')
const now = () => Date.now() / 1000

const sessions = (send) => ({
  /** Returns the token of a new session: its secret, for a cookie. */
  async login(user) {
    const token = randomBytes(24).toString('base64url')
    const id = idOf(token)
    await send([
      ['ZADD', RECENT, now(), id],
      ['HSET', LOGIN, id, String(user)],
    ])
    return token
  },

  /** Records a page view. Undefined if the session has ended: then nothing is counted. */
  async view(token, item) {
    const id = idOf(token)
    const name = String(item) // an array from a query string would become several arguments
    const [, , , views, user] = await send([
      ['ZADD', RECENT, 'XX', now(), id], // XX: does not add a session that has ended
      ['ZADD', viewed(id), now(), name],
      ['ZREMRANGEBYRANK', viewed(id), 0, -26], // keeps the newest 25
      ['ZINCRBY', POPULAR, -1, name],
      ['HGET', LOGIN, id], // last: also shows a logout that came between these commands
    ])
    if (typeof user === 'string') return { user, views: -Number(views) }
    await send([
      ['DEL', viewed(id)], // undoes the view: the session has ended
      ['ZINCRBY', POPULAR, 1, name],
      ['ZREMRANGEBYSCORE', POPULAR, 0, '+inf'], // items without views
    ])
    return undefined
  },

  /** The users of the most recently seen sessions, newest first. */
  async recent(limit = 50) {
    const [ids] = await send([['ZREVRANGE', RECENT, 0, Math.max(limit, 1) - 1]])
    if (ids.length === 0) return []
    const [users] = await send([['HMGET', LOGIN, ...ids]])
    return users.filter((user) => user !== null)
  },

  /** Ends a session. Returns whether there was one. */
  async logout(token) {
    const id = idOf(token)
    const [ended] = await send([
      ['HDEL', LOGIN, id], // first: a view that comes later finds no session
      ['ZREM', RECENT, id],
      ['DEL', viewed(id)],
    ])
    return ended === 1
  },
})
