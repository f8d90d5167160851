import { Type } from 'typebox'
import { Exactly, Name, Time } from '../schemas.ts'

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
