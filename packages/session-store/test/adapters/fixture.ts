import { onTestFinished } from 'vitest'

/** One field more than a session of a framework may have, in a body that both frameworks accept. */
export const tooManyFields = Object.fromEntries(
  Array.from({ length: 10_001 }, (_, index) => [`f${index.toString(36)}`, 0]),
)

const FATAL = ['uncaughtException', 'unhandledRejection']

/** Collects errors, until this test ends, that would otherwise end the process. */
export function fatalErrorsOfThisTest(): unknown[] {
  const errors: unknown[] = []
  for (const event of FATAL) {
    const listeners = process.listeners(event)
    process.removeAllListeners(event)
    process.on(event, (error) => errors.push(error))
    onTestFinished(() => {
      process.removeAllListeners(event)
      for (const listener of listeners) process.on(event, listener as () => void)
    })
  }
  return errors
}
