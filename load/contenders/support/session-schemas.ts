import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'

// The schemas of apps/api's routes, for contenders with their own routes.

const name = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: NAME_PATTERN }
const text = { type: 'string' }
const number = { type: 'number' }
const integer = { type: 'integer' }

const object = (properties: object) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const list = (properties: object) => ({ type: 'array', items: object(properties) })

export const bodies = { login: object({ user: name }), view: object({ item: name }) }

export const answers = {
  login: object({ token: text, user: text, expiresAt: integer }),
  me: object({ user: text, lastSeenAt: number }),
  view: object({ user: text, item: text, views: integer }),
  views: object({ items: list({ item: text, viewedAt: number }) }),
  popular: object({ items: list({ item: text, views: integer }) }),
}

export const limit = {
  type: 'object',
  properties: { limit: { ...integer, minimum: 1, maximum: 100, default: 10 } },
  additionalProperties: false,
}
