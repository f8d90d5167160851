import { setTimeout as delay } from 'node:timers/promises'
import { StoreError } from '../errors.ts'
import { checkFunctions } from '../input.ts'
import { isNotSent, notSent, type Outcome, readOutcomes, updateError } from '../outcomes.ts'
import { scanOne } from '../scan.ts'
import { withDeadline } from '../send.ts'
import type { Strategy } from '../strategy.ts'
import type { Update } from '../updates.ts'

const PING: Update<void> = { commands: [['PING']], readOnly: true, read: () => undefined }
const RETRY_MS = 100

/** What sends updates to one Redis server, by whichever client. */
export interface Sender {
  /** Told as `store.strategy`. */
  readonly name: string
  /**
   * Sends the commands of an update, in their order, and resolves with what became of each: Redis's
   * reply; an `Error` whose name is `ReplyError` where Redis answered with an error; any other `Error`
   * where the reply was lost. May end early with such a one. To reject means the same for all of them,
   * unless it is with a `StoreError`, which the caller gets as it is.
   *
   * Limits of time and number are its own business: the store adds none.
   */
  send(update: Update<unknown>): Promise<readonly Outcome[]>
  /** Finishes what is in flight, then closes every connection that it opened. */
  close(): Promise<void>
}

/**
 * A strategy that sends by `sender`: for another client than ioredis, or another way of using it.
 *
 * @throws TypeError when the sender lacks a name or a function.
 */
export function strategyOf(sender: Sender): Strategy {
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')

  async function run<Result>(update: Update<Result>): Promise<Result> {
    try {
      return readOutcomes(update, await outcomesOf(update))
    } catch (error) {
      throw updateError(error, update.readOnly)
    }
  }

  async function outcomesOf(update: Update<unknown>): Promise<readonly Outcome[]> {
    try {
      return await sender.send(update)
    } catch (error) {
      if (error instanceof StoreError) throw error
      const lost = new Error('the update was not sent, or its replies were lost', { cause: error })
      return update.commands.map(() => lost)
    }
  }

  return {
    name: sender.name,
    pool: undefined,
    run,
    scan: (request, from) => run(scanOne(request, from)),
    async ready(timeoutMs) {
      const end = Date.now() + timeoutMs
      let reason: unknown
      do {
        try {
          return await withDeadline(run(PING), end - Date.now(), true)
        } catch (error) {
          reason = error
        }
        await delay(Math.min(RETRY_MS, Math.max(0, end - Date.now())))
      } while (Date.now() < end)
      throw isNotSent(reason) ? reason : notSent(`no answer after ${timeoutMs / 1000} s`, reason)
    },
    close: () => sender.close(),
  }
}
