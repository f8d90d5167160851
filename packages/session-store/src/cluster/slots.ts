import calculateSlot from 'cluster-key-slot'
import { type Command, firstKeyOf } from '../command.ts'
import type { Keys } from '../keys.ts'

export const SLOTS = 16_384

/** Slots by hash tag. Keys of a store have as many tags as there are partitions. */
const slots = new Map<string, number>()

/** The slot of a command's keys. */
export function slotOf(command: Command): number {
  const key = firstKeyOf(command) ?? ''
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

const inOneSlot = (keys: readonly string[]) =>
  new Set(keys.map((key) => calculateSlot(key))).size === 1

/**
 * Scripts use several keys of a session or of an item.
 *
 * @throws TypeError if these keys are in different slots.
 */
export function checkKeys(keys: Keys): void {
  const name = 'any'
  const ofSession = [keys.login(name), keys.recent(name), keys.viewed(name), keys.data(name)]
  const ofItem = [keys.popular(name), keys.once(name, name)]
  if (inOneSlot(ofSession) && inOneSlot(ofItem)) return
  throw new TypeError(
    'in a cluster, the keys of a session must share a slot, and likewise those of an item; set keys: partitionedKeys()',
  )
}
