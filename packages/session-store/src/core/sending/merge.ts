import type { Command, CommandList, Reply } from '../operation.ts'
import { type Outcome, withOmitted } from '../outcomes.ts'

type Argument = string | number

interface Merged {
  /** The operation's own, until another one is merged into a copy. */
  command: Command
  readonly rule: Rule | undefined
  /** The position of the merged commands in their operations. */
  readonly place: number
  /** The indexes of the operations whose commands were merged. */
  readonly operations: number[]
}

/** How to merge commands with the same name and key into one command, and how to split its reply. */
interface Rule {
  /** Converts the merged command to its variadic form, if that has another name or form. */
  variadic?(merged: Command): Command
  /** Whether Redis accepts the arguments: a merged command that Redis refuses would fail for all callers. */
  fits(command: Command): boolean
  mergeable(into: Command, command: Command): boolean
  add(into: Argument[], command: Command): void
  /** The reply for the `part`th command that was merged. */
  split(reply: Reply, part: number, merged: Merged, operations: readonly CommandList[]): Reply
}

/** `ZADD key [XX] score member …`: only commands with the same flags can be merged. */
const zaddOptions = (command: Command) => (command[2] === 'XX' ? 'XX' : '')

const sharedReply = (reply: Reply) => reply

/** For a variadic command whose reply has one element for each merged command. */
const listedReply = (reply: Reply, part: number) =>
  Array.isArray(reply) ? ((reply as Reply[])[part] ?? null) : reply

/** Sums of fractions and of large numbers depend on their order. */
const isExact = Number.isSafeInteger

const isBelow = (limit: number, value: Argument | undefined) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) < limit

/** For an idempotent command: one execution replaces several equal ones. */
const sameCommand = (fits: Rule['fits']): Rule => ({
  fits,
  mergeable(into, command) {
    for (let at = 2; at < command.length; at++) if (command[at] !== into[at]) return false
    return true
  },
  add() {},
  split: sharedReply,
})

const rules = new Map<string, Rule>(
  Object.entries({
    HGET: {
      fits: ({ length }) => length === 3,
      mergeable: () => true,
      add: (into, [, , field = '']) => into.push(field),
      variadic: ([, ...args]) => ['HMGET', ...args],
      split: listedReply,
    },
    BITCOUNT: sameCommand(({ length }) => length === 2),
    EXPIRE: sameCommand(({ length, 2: seconds }) => length === 3 && Number.isInteger(seconds)),
    HSET: {
      fits: ({ length }) => length >= 4 && length % 2 === 0,
      mergeable: () => true,
      add: (into, [, , ...pairs]) => into.push(...pairs),
      split: sharedReply, // the number of new fields, which `read` must ignore
    },
    // A string in Redis has at most 2^32 bits.
    SETBIT: {
      fits: ({ length, 2: offset, 3: bit }) =>
        length === 4 && isBelow(2 ** 32, offset) && isBelow(2, bit),
      mergeable: () => true,
      add: (into, [, , ...bit]) => into.push(...bit),
      variadic([, key = '', ...bits]) {
        const command: [string, ...Argument[]] = ['BITFIELD', key]
        for (let at = 0; at < bits.length; at += 2) {
          command.push('SET', 'u1', bits[at] ?? 0, bits[at + 1] ?? 0)
        }
        return command
      },
      split: listedReply,
    },
    ZADD: {
      fits(command) {
        const score = zaddOptions(command) === '' ? 2 : 3
        return command.length === score + 2 && Number.isFinite(command[score])
      },
      mergeable: (into, command) => zaddOptions(into) === zaddOptions(command),
      add(into, command) {
        for (let at = zaddOptions(command) === '' ? 2 : 3; at < command.length; at++) {
          into.push(command[at] ?? '')
        }
      },
      split: sharedReply, // the number of new members, which `read` must ignore
    },
    ZINCRBY: {
      fits: (command) => command.length === 4 && isExact(command[2]),
      mergeable: (into, command) =>
        into[3] === command[3] && isExact(Number(into[2]) + Number(command[2])),
      add(into, [, , increment]) {
        into[2] = Number(into[2]) + Number(increment)
      },
      // The score after each increment, as if Redis had executed them one after the other.
      split(reply, part, { operations: members, place }, operations) {
        let score = Number(reply)
        for (const later of members.slice(part + 1)) {
          score -= Number(operations[later]?.commands[place]?.[2])
        }
        return String(score)
      },
    },
    ZREMRANGEBYRANK: sameCommand(
      (command) =>
        command.length === 4 && Number.isFinite(command[2]) && Number.isFinite(command[3]),
    ),
  } satisfies Record<string, Rule>),
)

export interface Batch {
  readonly commands: readonly Command[]
  /** Returns the outcomes of each operation's commands. */
  split(outcomes: readonly Outcome[]): Outcome[][]
}

/**
 * Merges the operations of concurrent callers into one list of as few commands as possible.
 *
 * The list has the first commands of all operations, then all second commands, and so on. Commands at the same
 * position with the same key are merged if an equivalent variadic command exists. So the order within each
 * operation is kept, and the order between operations is one that concurrent callers could see without batching.
 * Operations that are not `mergeable` follow unchanged: a logout between the commands of an `updateToken` would
 * leave half a session.
 */
export function merge(operations: readonly CommandList[]): Batch {
  const all: Merged[] = []
  let longest = 0
  for (const { commands } of operations) longest = Math.max(longest, commands.length)
  for (let place = 0; place < longest; place++) {
    const sameKey = new Map<Argument, Merged>()
    for (let index = 0; index < operations.length; index++) {
      const { commands, mergeable } = operations[index] as CommandList
      const command = commands[place]
      if (!mergeable || command === undefined) continue
      // All items are in the same key, so ZINCRBY commands are grouped by item.
      const key = (command[0] === 'ZINCRBY' ? command[3] : command[1]) ?? ''
      const candidate = sameKey.get(key)
      const known = rules.get(command[0])
      const rule = known?.fits(command) ? known : undefined
      if (
        rule &&
        candidate?.command[0] === command[0] &&
        candidate.command[1] === command[1] &&
        rule.mergeable(candidate.command, command)
      ) {
        const into: [string, ...Argument[]] =
          candidate.operations.length === 1
            ? [...candidate.command]
            : (candidate.command as [string, ...Argument[]])
        rule.add(into, command)
        candidate.command = into
        candidate.operations.push(index)
        continue
      }
      const merged: Merged = { command, rule, place, operations: [index] }
      if (rule) sameKey.set(key, merged)
      all.push(merged)
    }
  }
  operations.forEach(({ commands, mergeable }, index) => {
    if (mergeable) return
    commands.forEach((command, place) => {
      all.push({ command, rule: undefined, place, operations: [index] })
    })
  })
  return {
    commands: all.map(({ command, rule, operations: members }) =>
      members.length > 1 ? (rule?.variadic?.(command) ?? command) : command,
    ),
    split: (outcomes) => splitOutcomes(operations, all, withOmitted(outcomes, all.length)),
  }
}

function splitOutcomes(
  operations: readonly CommandList[],
  all: readonly Merged[],
  outcomes: readonly Outcome[],
): Outcome[][] {
  const own = operations.map(({ commands }) => new Array<Outcome>(commands.length).fill(null))
  all.forEach((merged, index) => {
    const outcome = outcomes[index] ?? null
    const { rule, place, operations: members } = merged
    members.forEach((operation, part) => {
      const target = own[operation]
      if (!target) return
      target[place] =
        outcome instanceof Error || !rule || members.length === 1
          ? outcome
          : rule.split(outcome, part, merged, operations)
    })
  })
  return own
}
