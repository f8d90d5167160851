import { NAME_PATTERN } from '@onetrip/session-store'
import { type Static, Type } from 'typebox'
import { Exactly, limitOf, Name, Time } from '../schemas.ts'

const NOW = 1_795_255_200_250

export const ItemParams = Type.Object({ item: Name })

const Left = Type.Integer({ description: 'Pieces that are left' })

export const StockBody = Exactly(
  { pieces: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }) },
  {
    description: 'Pieces that are for sale, those that are sold included',
    examples: [{ pieces: 100 }],
  },
)

export const Stock = Exactly(
  { item: Name, left: Left, sold: Type.Integer() },
  { description: 'Pieces of the item', examples: [{ item: 'book', left: 99, sold: 1 }] },
)

export const Purchase = Exactly(
  { item: Name, boughtAt: Time, left: Left },
  {
    description: 'When the user bought it, and what is left',
    examples: [{ item: 'book', boughtAt: NOW, left: 99 }],
  },
)

const Text = Type.String({ minLength: 1, maxLength: 280, pattern: NAME_PATTERN })

export const FeedBody = Exactly(
  { text: Text },
  { description: 'What is posted', examples: [{ text: 'I bought a book' }] },
)

export const FeedPosition = Exactly(
  { id: Type.Integer() },
  { description: 'Number of the entry in the feed of everybody', examples: [{ id: 17 }] },
)

export const FeedPage = Type.Object(
  {
    entries: Type.Array(
      Type.Object(
        {
          id: Type.Integer({ description: 'Number in this feed' }),
          user: Name,
          text: Text,
          postedAt: Time,
        },
        { additionalProperties: false },
      ),
    ),
    nextCursor: Type.Optional(
      Type.String({ description: 'For the page that follows; not there on the last one' }),
    ),
  },
  {
    additionalProperties: false,
    description: 'A page of a feed, the newest entry first',
    examples: [
      {
        entries: [{ id: 17, user: 'ada', text: 'I bought a book', postedAt: NOW }],
        nextCursor: '17',
      },
    ],
  },
)

export const feedQuery = (defaultLimit: number) =>
  Type.Object(
    {
      limit: limitOf(defaultLimit),
      cursor: Type.Optional(
        Type.String({
          pattern: '^[1-9][0-9]{0,14}$',
          description: 'The nextCursor of the page before',
        }),
      ),
    },
    { additionalProperties: false },
  )

const ViewerCount = Type.Integer({ description: 'About how many users, of the last week' })

export const Viewers = Exactly(
  { item: Name, viewers: ViewerCount },
  { description: 'Unique viewers of the item', examples: [{ item: 'book', viewers: 17 }] },
)

export const Viewer = Exactly(
  { item: Name, seenBefore: Type.Boolean(), viewers: ViewerCount },
  {
    description: 'Whether the user viewed it before, and how many did, this user included',
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
        'Empty: nothing is unusual. `long absence`: more than 30 days since the login before. `not assessed`: Redis did not answer at the login',
    }),
  },
  {
    description:
      'What is known of the logins of the user, and what is unusual about the last one and this request',
    examples: [{ logins: 3, lastLoginAt: NOW, reasons: ['new network'] }],
  },
)
