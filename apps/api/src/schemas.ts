import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'
import { type TProperties, Type } from 'typebox'

/** The time in all examples. */
const NOW = 1_795_255_200_250
const SESSION_ID = 'AZ3z4vYAc2Vzc2lvbi1vZi1hZGEtMTIz'

/** An object without additional properties. */
export const Exactly = <Properties extends TProperties>(
  properties: Properties,
  options: { description?: string; examples?: unknown[] } = {},
) => Type.Object(properties, { additionalProperties: false, ...options })

/** Name of a user or an item. */
const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  pattern: NAME_PATTERN,
})

const Time = Type.Integer({ description: 'Milliseconds since 1970' })

/** The user of a session. */
const SessionUser = Type.Unsafe<string | null>({
  ...Name,
  type: ['string', 'null'],
  description: 'User name; null for a guest session',
})
const SessionId = Type.String({ pattern: '^[A-Za-z0-9_-]{32}$' })

const Remember = Type.Optional(
  Type.Boolean({ description: 'The token is valid for SESSION_REMEMBERED_SECONDS' }),
)

/** The credentials without an authenticator of the application. */
export const UserCredentials = Exactly(
  { user: Name, remember: Remember },
  { description: 'Credentials', examples: [{ user: 'ada' }] },
)

export const Login = Exactly(
  { token: Type.String(), user: Name, expiresAt: Time },
  {
    description: 'The session token (also set as a cookie) and when it expires at the latest',
    examples: [
      {
        token: `${SESSION_ID}.c2lnbmF0dXJlLW9mLXRoZS1pZC1ieS10aGUtc2VydmVy`,
        user: 'ada',
        expiresAt: NOW + 2_592_000_000,
      },
    ],
  },
)

export const Guest = Exactly(
  { user: SessionUser, token: Type.Optional(Type.String()), expiresAt: Type.Optional(Time) },
  {
    description:
      'The user of the session: null for a guest. `token` and `expiresAt` of a new session',
    examples: [{ user: 'ada' }],
  },
)

export const Me = Exactly(
  { user: SessionUser, lastSeenAt: Time },
  {
    description: 'User of the session, and when the session was last used',
    examples: [{ user: 'ada', lastSeenAt: NOW }],
  },
)

export const ViewBody = Exactly(
  { item: Name },
  { description: 'The viewed item', examples: [{ item: 'book' }] },
)

export const ViewHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description:
        '1 to 255 characters. Makes a view safe to retry: views of the session and item with the same key are counted once ' +
        'within ten minutes. Refused with 400 if the API uses a cluster',
    }),
  ),
})

export const View = Exactly(
  { user: SessionUser, item: Name, views: Type.Integer() },
  {
    description: 'The user, the item, and its view count including this view (halved once a day)',
    examples: [{ user: 'ada', item: 'book', views: 17 }],
  },
)

export const Views = Exactly(
  {
    items: Type.Array(Exactly({ item: Name, viewedAt: Time })),
  },
  {
    description: 'Up to 25 items, newest first',
    examples: [{ items: [{ item: 'book', viewedAt: NOW }] }],
  },
)

const ETag = {
  headers: { etag: { type: 'string', description: 'Version of the data, for If-Match' } },
}
const Version = Type.Integer({ description: 'Increases with each change; 0: never changed' })

export const SessionData = Exactly(
  { fields: Type.Object({}, { additionalProperties: true }), version: Version },
  {
    ...ETag,
    description: 'One JSON value per field',
    examples: [{ fields: { cart: ['book'], theme: 'dark' }, version: 3 }],
  },
)

export const DataPatch = Type.Object(
  {},
  {
    additionalProperties: true,
    description:
      'One JSON value per field. null removes a field. Fields that are not named do not change',
    examples: [{ cart: ['book', 'pen'], theme: null }],
  },
)

export const PatchHeaders = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      pattern: '^(?:\\*|"[0-9]{1,15}")$',
      description: 'ETag of GET /me/data: change the data only if it still has this version',
    }),
  ),
})

export const PatchedData = Exactly(
  { version: Version },
  { ...ETag, description: 'The new version', examples: [{ version: 4 }] },
)

export const UserSessions = Exactly(
  {
    sessions: Type.Array(
      Exactly({
        id: SessionId,
        loggedInAt: Time,
        lastSeenAt: Time,
        label: Type.Optional(Type.String({ description: 'Device, such as Firefox on Windows' })),
        current: Type.Boolean({ description: 'Whether it is the session of this request' }),
      }),
    ),
  },
  {
    description: 'Sessions, latest login first',
    examples: [
      { sessions: [{ id: SESSION_ID, loggedInAt: NOW - 60_000, lastSeenAt: NOW, current: true }] },
    ],
  },
)

export const SessionParams = Type.Object({ id: SessionId })

export const EndSessionsQuery = Exactly({
  others: Type.Optional(Type.Boolean({ description: 'Keep the session of this request' })),
})

export const Ended = Exactly(
  { ended: Type.Integer() },
  { description: 'Number of sessions that were ended', examples: [{ ended: 2 }] },
)

export const Recent = Exactly(
  {
    sessions: Type.Array(Exactly({ user: SessionUser, lastSeenAt: Time })),
  },
  {
    description: 'Users and when their sessions were last used, newest first',
    examples: [{ sessions: [{ user: 'ada', lastSeenAt: NOW }] }],
  },
)

export const Popular = Exactly(
  {
    items: Type.Array(Exactly({ item: Name, views: Type.Integer() })),
  },
  {
    description: 'Items and their views, most viewed first',
    examples: [{ items: [{ item: 'book', views: 17 }] }],
  },
)

export const NoContent = Type.Unsafe<undefined>({ type: 'null', description: 'Done' })

export const limitQuery = (defaultLimit: number) =>
  Exactly({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: defaultLimit })),
  })
