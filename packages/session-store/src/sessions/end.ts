import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { forgetSessions, newestEntries } from '../operations/lists.ts'
import { type EndIf, endSessions } from '../operations/sessions.ts'
import type { Runner } from '../redis/runner.ts'
import { entriesOf, type ListContext, readEntries, STEP_SIZE } from './list.ts'

interface Context {
  readonly runner: Pick<Runner, 'run'>
  readonly keys: Keys
}

/**
 * Ends a session of any user. Returns whether it existed. Does not wait for the removal of its entry: reading the list
 * would remove it, too.
 */
export async function endSession({ runner, keys }: Context, id: string): Promise<boolean> {
  const [user] = await runner.run(endSessions(keys, [id]))
  if (user) runner.run(forgetSessions(keys, user, [id])).catch(() => undefined)
  return user !== undefined
}

/**
 * Ends sessions, all or those that meet the conditions, and then removes them from their users' lists. Returns their
 * number. If the second round trip fails, reading the lists removes the entries.
 */
export async function endAndForget(
  { runner, keys }: Context,
  ids: readonly string[],
  endIf?: EndIf,
): Promise<number> {
  if (ids.length === 0) return 0
  const users = await runner.run(endSessions(keys, ids, endIf))
  const ended = ids.flatMap((id, index) => (users[index] === undefined ? [] : [{ id, index }]))
  const byUser = Map.groupBy(ended, ({ index }) => users[index])
  const commands = [...byUser].flatMap(([user, own]) =>
    user
      ? forgetSessions(
          keys,
          user,
          own.map(({ id }) => id),
        ).commands
      : [],
  )
  const forget = { commands, readOnly: false, read: () => undefined }
  if (commands.length > 0) await runner.run(forget).catch(() => undefined)
  return ended.length
}

/**
 * Ends all sessions in a user's list. Yields the number of sessions ended in each step; see `totalEnded`.
 *
 * @param except The id of a session to keep.
 */
export async function* endAll(
  context: ListContext,
  user: string,
  except?: string,
): AsyncGenerator<number> {
  for await (const entries of entriesOf(context, user)) {
    const { sessions } = await readEntries(context, user, entries)
    const ids = sessions.map(({ id }) => id).filter((id) => id !== except)
    yield await endAndForget(context, ids)
  }
}

/**
 * Adds up the sessions that the steps of a call have ended.
 *
 * @throws StoreError If a step fails after sessions have or may have ended: with `mayHaveWritten` and `retrySafe`,
 *   because a repeated call ends the others. Otherwise the error of the step.
 */
export async function totalEnded(steps: AsyncIterable<number>): Promise<number> {
  let total = 0
  try {
    for await (const ended of steps) total += ended
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.statusCode !== 503) throw cause
    const { code, mayHaveWritten } = cause
    if (total === 0 && !mayHaveWritten) throw cause
    const message = 'some sessions may have ended and others not; repeat the call to end them all'
    throw new StoreError(mayHaveWritten ? code : 'ONETRIP_OUTCOME_UNKNOWN', message, {
      retrySafe: true,
      cause,
    })
  }
  return total
}

/**
 * Ends the sessions of a user beyond the maximum of latest logins. A session ends only after that many later ones were
 * found, and their order never changes, so runs of several processes never end too many.
 */
export class KeepLatest {
  readonly #context: ListContext & { maxSessionsPerUser: number }
  /** By user: `again` if there was another login since the run began. */
  readonly #runs = new Map<string, { again: boolean; readonly done: Promise<void> }>()

  constructor(context: ListContext & { maxSessionsPerUser: number }) {
    this.#context = context
  }

  /** Logins at the same time share one run, so that they do not all end the same sessions. */
  of(user: string): Promise<void> {
    const run = this.#runs.get(user) ?? { again: true, done: Promise.resolve() }
    run.again = true
    if (this.#runs.has(user)) return run.done
    this.#runs.set(user, Object.assign(run, { done: this.#run(user, run) }))
    return run.done
  }

  async #run(user: string, run: { again: boolean }): Promise<void> {
    try {
      while (run.again) run.again = (await this.#endSurplus(user, run)) === STEP_SIZE || run.again
    } finally {
      this.#runs.delete(user)
    }
  }

  async #endSurplus(user: string, run: { again: boolean }): Promise<number> {
    run.again = false
    const { runner, keys, maxSessionsPerUser: max } = this.#context
    const entries = await runner.run(newestEntries(keys, user, max + STEP_SIZE))
    const { sessions } = await readEntries(this.#context, user, entries)
    const surplus = sessions.slice(max).map(({ id }) => id)
    await endAndForget(this.#context, surplus)
    return surplus.length
  }
}
