import { Redis, type RedisOptions } from 'ioredis'
import { onTestFinished } from 'vitest'
import {
  type Sender,
  SessionStore,
  type SessionStoreOptions,
  type StoreWarning,
  warningChannel,
} from '../src/index.ts'

export const SECRET = 'a-secret-for-tests-a-secret-for-tests'
export const tokens = { secrets: [SECRET] }

/** Whether the tests run in the project `memory`, without a server. */
export const inMemory = process.env.ONETRIP_TEST_MEMORY === 'on'

/** In the project `memory`: what replaces the servers, by their URL. */
export const senders = new Map<string, Sender>()

/** A store without a janitor, closed when the current test ends. */
export function newStore(options: Partial<SessionStoreOptions>): SessionStore {
  const { redis, ...others } = options
  const sender = senders.get(String(redis))
  const own = sender ? { ...others, sender } : options
  const store = new SessionStore({ tokens, janitor: 'elsewhere', deadlineMs: 20_000, ...own })
  onTestFinished(() => store.close())
  return store
}

/** Like `newStore`, and ready. */
export async function readyStore(options: Partial<SessionStoreOptions>): Promise<SessionStore> {
  const store = newStore(options)
  await store.ready()
  return store
}

type Options = Omit<RedisOptions, 'replyMapping'>

/** A connection for the commands of the current test itself. */
export function adminForThisTest(socket: string, options: Options = {}): Redis {
  const admin = new Redis(socket, options)
  onTestFinished(() => admin.disconnect())
  return admin
}

interface Published<Message> {
  subscribe(listen: (message: Message) => void): void
  unsubscribe(listen: (message: Message) => void): unknown
}

/** Collects what a channel publishes until the current test ends. */
export function messagesOf<Message>(channel: Published<unknown>): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => void messages.push(message as Message)
  channel.subscribe(listen)
  onTestFinished(() => void channel.unsubscribe(listen))
  return messages
}

export const warningsOfThisTest = (): StoreWarning[] => messagesOf(warningChannel)

export const codeOf = (error: unknown) => (error as { code: string }).code

/** `ok`, or the code of the error of a call. */
export const outcomeOf = (call: Promise<unknown>): Promise<string> => call.then(() => 'ok', codeOf)

/** The error of a call for a session that has ended. */
export const gone = { code: 'ONETRIP_UNKNOWN_SESSION' }

/** The session id of a token. */
export const idOf = (token: string): string => token.split('.')[0] ?? ''
