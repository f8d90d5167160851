import { onTestFinished } from 'vitest'
import { type StoreWarning, warningChannel } from '../../src/core/index.ts'

/** Collects the warnings published until this test ends. */
export function warningsOfThisTest(): StoreWarning[] {
  const warnings: StoreWarning[] = []
  const listen = (message: unknown) => warnings.push(message as StoreWarning)
  warningChannel.subscribe(listen)
  onTestFinished(() => {
    warningChannel.unsubscribe(listen)
  })
  return warnings
}

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
