/** Called once, asynchronously. */
export type Callback<Result = void> = (error?: unknown, result?: Result) => void

/**
 * Passes the result to the callback. Without a callback, it returns the promise.
 *
 * express-session drops the promise if the application passes no callback, as in `req.session.destroy()`: its error
 * must not become an unhandled rejection, which ends the process. Neither may an error that a callback throws.
 */
export function answer<Result>(
  promise: Promise<Result>,
  callback: Callback<Result> | undefined,
): Promise<Result | undefined> {
  if (callback === undefined) {
    promise.catch(() => undefined)
    return promise
  }
  const call = async (error: unknown, result?: Result) => {
    try {
      await callback(error, result)
    } catch (thrown) {
      const detail = thrown instanceof Error ? thrown.stack : undefined
      process.emitWarning(
        'a callback of the session store failed; its request may have no response',
        {
          code: 'ONETRIP_CALLBACK_FAILED',
          detail,
        },
      )
    }
    return result
  }
  return promise.then(
    (result) => call(null, result),
    (error: unknown) => call(error),
  )
}
