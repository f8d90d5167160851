import { type Outcome, StoreError } from '@onetrip/session-store'

const REDIRECTIONS = new Set(['MOVED', 'ASK'])
/** Errors of a node that did not execute a command, or a script, because of the state of its slot. */
const TEMPORARY = new Set([...REDIRECTIONS, 'TRYAGAIN', 'CLUSTERDOWN'])

export const isRefusal = (outcome: unknown): boolean =>
  outcome instanceof Error && outcome.name === 'ReplyError'

const isOf = (kinds: ReadonlySet<string>, outcome: unknown): boolean =>
  outcome instanceof Error &&
  isRefusal(outcome) &&
  kinds.has(outcome.message.split(' ', 1)[0] ?? '')

/** Whether a node refused a command because another node has to execute it. */
export const isRedirection = (outcome: unknown): boolean => isOf(REDIRECTIONS, outcome)

/** Whether a node did not execute a command, and a retry may succeed. */
export const isTemporary = (outcome: unknown): boolean => isOf(TEMPORARY, outcome)

/** Adds to an error what the store wants to know: the node whose reply was lost, or that it is temporary. */
export function explained(outcome: Outcome, node?: string): Outcome {
  if (!(outcome instanceof Error) || outcome instanceof StoreError) return outcome
  if (isTemporary(outcome)) return Object.assign(outcome, { temporary: true })
  if (isRefusal(outcome)) return outcome
  return Object.assign(new Error(outcome.message, { cause: outcome }), { node })
}
