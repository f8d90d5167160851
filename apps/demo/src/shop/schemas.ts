import { MAX_NAME_LENGTH, NAME_PATTERN } from '@onetrip/session-store'
import { type Static, Type } from 'typebox'
import { Exactly } from '../events.ts'

/** The time in all examples. */
const NOW = 1_795_255_200_250

/** Name of a user or an item. */
const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, pattern: NAME_PATTERN })
const Time = Type.Integer({ description: 'Milliseconds since 1970' })

export const ItemParams = Type.Object({ item: Name })

const Left = Type.Integer({ description: 'Pieces left' })

export const StockBody = Exactly(
  { pieces: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }) },
  {
    description: 'Pieces on sale, including those already sold',
    examples: [{ pieces: 100 }],
  },
)

export const Stock = Exactly(
  { item: Name, left: Left, sold: Type.Integer() },
  { description: 'Stock of the item', examples: [{ item: 'book', left: 99, sold: 1 }] },
)

export const Purchase = Exactly(
  { item: Name, boughtAt: Time, left: Left },
  {
    description: 'Time of the purchase, and pieces left',
    examples: [{ item: 'book', boughtAt: NOW, left: 99 }],
  },
)

const Text = Type.String({ minLength: 1, maxLength: 280, pattern: NAME_PATTERN })

export const FeedBody = Exactly(
  { text: Text },
  { description: 'Text to post', examples: [{ text: 'I bought a book' }] },
)

export const FeedPosition = Exactly(
  { id: Type.Integer() },
  { description: 'Number of the entry in the feed of all users', examples: [{ id: 17 }] },
)

export const FeedPage = Exactly(
  {
    entries: Type.Array(
      Exactly({
        id: Type.Integer({ description: 'Number in this feed' }),
        user: Name,
        text: Text,
        postedAt: Time,
      }),
    ),
    nextCursor: Type.Optional(
      Type.String({ description: 'Cursor of the next page; absent on the last page' }),
    ),
  },
  {
    description: 'A page of a feed, newest entry first',
    examples: [
      {
        entries: [{ id: 17, user: 'ada', text: 'I bought a book', postedAt: NOW }],
        nextCursor: '17',
      },
    ],
  },
)

export const feedQuery = (defaultLimit: number) =>
  Exactly({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: defaultLimit })),
    cursor: Type.Optional(
      Type.String({
        pattern: '^[1-9][0-9]{0,14}$',
        description: 'The nextCursor of the previous page',
      }),
    ),
  })

const ViewerCount = Type.Integer({ description: 'Estimated number of users' })

export const Viewers = Exactly(
  { item: Name, viewers: ViewerCount },
  { description: 'Unique viewers of the item', examples: [{ item: 'book', viewers: 17 }] },
)

export const Viewer = Exactly(
  { item: Name, seenBefore: Type.Boolean(), viewers: ViewerCount },
  {
    description:
      'Whether the user viewed the item before, and the number of viewers including this user',
    examples: [{ item: 'book', seenBefore: false, viewers: 17 }],
  },
)

const RiskReason = Type.Enum(['first login', 'new network', 'long absence', 'not assessed'])
export type RiskReason = Static<typeof RiskReason>

export const UserRisk = Exactly(
  {
    logins: Type.Integer(),
    lastLoginAt: Type.Unsafe<number | null>({ ...Time, type: ['integer', 'null'] }),
    reasons: Type.Array(RiskReason, {
      description:
        'Empty: nothing unusual. `long absence`: more than 30 days since the previous login. `not assessed`: Redis did not answer at the login',
    }),
  },
  {
    description: "Data about the user's logins, and why the last login or this request is unusual",
    examples: [{ logins: 3, lastLoginAt: NOW, reasons: ['new network'] }],
  },
)
