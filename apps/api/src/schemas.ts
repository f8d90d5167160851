import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'
import { Type } from 'typebox'

/** A user or an item. */
export const Name = Type.String({
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  pattern: NAME_PATTERN,
})

const ANSWER = { additionalProperties: false } as const

/** Seconds since 1970, with fraction. */
const UnixSeconds = Type.Number()

export const Login = Type.Object(
  { token: Type.String(), user: Type.String(), expiresAt: Type.String({ format: 'date-time' }) },
  ANSWER,
)
export const Me = Type.Object({ user: Type.String(), lastSeen: UnixSeconds }, ANSWER)
export const ViewBody = Type.Object({ item: Name }, ANSWER)
export const View = Type.Object(
  { user: Type.String(), item: Type.String(), views: Type.Integer() },
  ANSWER,
)
export const Views = Type.Object(
  { items: Type.Array(Type.Object({ item: Type.String(), viewedAt: UnixSeconds })) },
  ANSWER,
)
export const Recent = Type.Object(
  { sessions: Type.Array(Type.Object({ user: Type.String(), lastSeen: UnixSeconds })) },
  ANSWER,
)
export const Popular = Type.Object(
  { items: Type.Array(Type.Object({ item: Type.String(), views: Type.Integer() })) },
  ANSWER,
)

export const limitQuery = (defaultLimit: number) =>
  Type.Object(
    { limit: Type.Integer({ minimum: 1, maximum: 100, default: defaultLimit }) },
    { additionalProperties: false },
  )
