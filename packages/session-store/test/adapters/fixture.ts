import { onTestFinished } from 'vitest'

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
