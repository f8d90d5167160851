import { itemName } from '@onetrip/stack/measure/workload.ts'
import { messageOf, Problem } from '@onetrip/stack/problem.ts'
import { inParallel } from './sessions.ts'

/** The maximum of the API, so that no item is sold out during a run. */
const PIECES = 1_000_000_000

/**
 * Sets the stock of the items of a workload.
 *
 * @param token of a user who may sell.
 * @throws Problem when the API refuses or does not answer; the reason of `signal`.
 */
export async function putOnSale(
  url: string,
  token: string,
  items: number,
  signal: AbortSignal,
): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ pieces: PIECES })
  try {
    await inParallel(url, items, async (pool, index) => {
      signal.throwIfAborted()
      const path = `/items/${itemName(index)}/stock`
      const answer = await pool.request({ method: 'PUT', path, headers, body })
      const text = await answer.body.text()
      if (answer.statusCode !== 200) throw new Error(`it answered ${answer.statusCode} ${text}`)
    })
  } catch (cause) {
    signal.throwIfAborted()
    throw new Problem(`Putting items on sale at ${url} failed: ${messageOf(cause)}`, { cause })
  }
}
