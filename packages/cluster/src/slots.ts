import { type Command, firstKeyOf } from '@onetrip/session-store'
import calculateSlot from 'cluster-key-slot'

export const SLOTS = 16_384

/** Slots by hash tag. Keys of a store have as many tags as there are partitions. */
const slots = new Map<string, number>()

/** The slot of a command's keys. */
export function slotOf(command: Command): number {
  const key = firstKeyOf(command)
  const start = key.indexOf('{') + 1
  const end = key.indexOf('}', start)
  if (start === 0 || end <= start) return calculateSlot(key)
  const tag = key.slice(start, end)
  const known = slots.get(tag)
  if (known !== undefined) return known
  const slot = calculateSlot(tag)
  if (slots.size < SLOTS) slots.set(tag, slot)
  return slot
}
