import { closest, distance } from 'fastest-levenshtein'
import type { AdapterOptions } from './adapters/session-store.ts'
import type { DataLimits } from './data/data-fields.ts'
import type { JanitorOptions } from './retention/janitor.ts'
import type { SessionStoreOptions } from './store-options.ts'
import type { TokensOptions } from './tokens/tokens.ts'
import type { CookieOptions } from './web/cookie.ts'
import type { OwnStoreOptions, WebOptions } from './web/sessions.ts'

type NamesOf<Options> = Readonly<Record<keyof Options, true>>

const store: NamesOf<SessionStoreOptions> = {
  url: true,
  tls: true,
  client: true,
  poolSize: true,
  deadlineMs: true,
  strategy: true,
  sender: true,
  maxInFlight: true,
  tokens: true,
  keys: true,
  prefix: true,
  idleSeconds: true,
  maxSessionsPerUser: true,
  dataLimits: true,
  janitor: true,
}

const tokens: NamesOf<TokensOptions> = {
  secrets: true,
  lifetimeSeconds: true,
  rememberedLifetimeSeconds: true,
  clock: true,
}

const dataLimits: NamesOf<DataLimits> = { fields: true, fieldBytes: true, patchBytes: true }

const janitor: NamesOf<JanitorOptions> = {
  maxSessions: true,
  idleSeconds: true,
  intervalSeconds: true,
  batchSize: true,
  keptItems: true,
  rescaleEverySeconds: true,
  sweepEverySeconds: true,
  lockSeconds: true,
  signal: true,
  onProgress: true,
}

const cookie: NamesOf<CookieOptions> = {
  secure: true,
  name: true,
  sameSite: true,
  path: true,
  domain: true,
}

const web: NamesOf<WebOptions & OwnStoreOptions & { store: true }> = {
  cookie: true,
  publicOrigins: true,
  bearer: true,
  readyTimeoutMs: true,
  store: true,
}

const adapter: NamesOf<AdapterOptions> = { migrateFrom: true }

/** The names of all options, by what has them. */
const optionNames = {
  'a session store': store,
  tokens,
  dataLimits,
  'a janitor': janitor,
  cookie,
  'the sessions plugin': { ...web, ...store },
  'the session store of a framework': adapter,
} satisfies Record<string, Readonly<Record<string, true>>>

const COOKIE_LIFETIME =
  'the cookie lives as long as the token: set tokens.lifetimeSeconds (idleSeconds ends a session that is not used)'

/** Options of cookies that users of other packages know, and what is there instead. */
const instead: Readonly<Record<string, string>> = {
  'cookie.maxAge': COOKIE_LIFETIME,
  'cookie.expires': COOKIE_LIFETIME,
  'cookie.httpOnly': 'the cookie is always HttpOnly',
  'cookie.signed': 'the token is always signed, with tokens.secrets',
}

/**
 * Refuses options that do not exist: they could not take effect. An option that is undefined is ignored.
 *
 * @throws TypeError naming the option and what may have been meant.
 */
export function checkOptionNames(of: keyof typeof optionNames, options: object | undefined): void {
  const names: Readonly<Record<string, true>> = optionNames[of]
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || Object.hasOwn(names, name)) continue
    const hint = instead[`${of}.${name}`] ?? meant(name, Object.keys(names))
    throw new TypeError(`${of} has no option ${name}: ${hint}`)
  }
}

/** Names that differ in more than a quarter of their characters have nothing to do with each other. */
function meant(name: string, names: readonly string[]): string {
  const nearest = closest(name, names)
  if (distance(name.toLowerCase(), nearest.toLowerCase()) <= Math.ceil(name.length / 4))
    return `did you mean ${nearest}?`
  return `its options are ${names.join(', ')}`
}
