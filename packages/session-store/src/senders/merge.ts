import type { Outcome } from '../outcomes.ts'
import type { Command, CommandList, Reply } from '../updates.ts'

type Argument = string | number

interface Merged {
  readonly command: [name: string, ...args: Argument[]]
  /** The place of the merged commands in their updates. */
  readonly place: number
  /** The updates whose command it carries. */
  readonly updates: number[]
}

/** How commands of one name on one key become one command, and its reply theirs again. */
interface Rule {
  /** The variadic form of the merged command, where it has another name or form. */
  variadic?(merged: Command): Command
  /** Redis cannot refuse the command for its arguments: that would fail all whose commands are merged. */
  fits(command: Command): boolean
  mergeable(into: Command, command: Command): boolean
  add(into: Argument[], command: Command): void
  /** The reply to the command that was merged as number `part`. */
  split(reply: Reply, part: number, merged: Merged, updates: readonly CommandList[]): Reply
}

/** `ZADD key [XX] score member …`: flags must agree. */
const zaddOptions = (command: Command) => (command[2] === 'XX' ? 'XX' : '')

const sharedReply = (reply: Reply) => reply

/** Of a variadic command that replies with one element for each command that was merged. */
const listedReply = (reply: Reply, part: number) =>
  Array.isArray(reply) ? ((reply as Reply[])[part] ?? null) : reply

const isBelow = (limit: number, value: Argument | undefined) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) < limit

/** For a command that does the same once as several times, one after the other. */
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
      split: sharedReply, // how many fields are new; nobody reads it
    },
    // A string of Redis has at most 2^32 bits.
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
      split: sharedReply, // how many members are new; nobody reads it
    },
    ZINCRBY: {
      fits: (command) => command.length === 4 && Number.isFinite(command[2]),
      mergeable: (into, command) => into[3] === command[3],
      add(into, [, , increment]) {
        into[2] = Number(into[2]) + Number(increment)
      },
      // As if they had been sent one after the other.
      split(reply, part, { updates: members, place }, updates) {
        let score = Number(reply)
        for (const later of members.slice(part + 1)) {
          score -= Number(updates[later]?.commands[place]?.[2])
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
  /** What became of each update's commands. */
  split(outcomes: readonly Outcome[]): Outcome[][]
  /** The same while outcomes are missing: undefined for each update that lacks one. */
  splitArrived(outcomes: readonly (Outcome | undefined)[]): (Outcome[] | undefined)[]
}

/**
 * Merges the updates of concurrent callers into one list of as few commands as possible.
 *
 * The first commands of all updates come first, then all second ones, and so on; those of one place
 * that are on the same key become one where a variadic form says the same. So each update's own order
 * is kept, and the order between updates is one that callers who do not wait for each other could see
 * anyway. Updates that are not `mergeable` follow, each as it is: a logout between the commands of an
 * `updateToken` would leave half a session.
 */
export function merge(updates: readonly CommandList[]): Batch {
  const all: Merged[] = []
  let longest = 0
  for (const { commands } of updates) longest = Math.max(longest, commands.length)
  for (let place = 0; place < longest; place++) {
    const sameKey = new Map<Argument, Merged>()
    for (let index = 0; index < updates.length; index++) {
      const { commands, mergeable } = updates[index] as CommandList
      const command = commands[place]
      if (!mergeable || command === undefined) continue
      // Counts go by item; the key is the same for all of them.
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
        rule.add(candidate.command, command)
        candidate.updates.push(index)
        continue
      }
      const merged = { command: [...command] as Merged['command'], place, updates: [index] }
      if (rule) sameKey.set(key, merged)
      all.push(merged)
    }
  }
  updates.forEach(({ commands, mergeable }, index) => {
    if (mergeable) return
    commands.forEach((command, place) => {
      all.push({ command: [...command], place, updates: [index] })
    })
  })
  return {
    commands: all.map(({ command, updates: members }) =>
      members.length > 1 ? (rules.get(command[0])?.variadic?.(command) ?? command) : command,
    ),
    split: (outcomes) => splitOutcomes(updates, all, outcomes),
    splitArrived(outcomes) {
      const waiting = new Set(
        all.flatMap(({ updates }, index) => (outcomes[index] === undefined ? updates : [])),
      )
      const there = outcomes.map((outcome) => outcome ?? null)
      return splitOutcomes(updates, all, there).map((own, index) =>
        waiting.has(index) ? undefined : own,
      )
    },
  }
}

const notAnswered = (outcomes: readonly Outcome[]): Error =>
  outcomes.find((outcome) => outcome instanceof Error) ?? new Error('the sender gave no outcome')

function splitOutcomes(
  updates: readonly CommandList[],
  all: readonly Merged[],
  outcomes: readonly Outcome[],
): Outcome[][] {
  const own = updates.map(({ commands }) => new Array<Outcome>(commands.length).fill(null))
  all.forEach((merged, index) => {
    // A sender may end early, with an error.
    const outcome = index < outcomes.length ? (outcomes[index] ?? null) : notAnswered(outcomes)
    const rule = rules.get(merged.command[0])
    merged.updates.forEach((update, part) => {
      const target = own[update]
      if (!target) return
      target[merged.place] =
        outcome instanceof Error || !rule || merged.updates.length === 1
          ? outcome
          : rule.split(outcome, part, merged, updates)
    })
  })
  return own
}
