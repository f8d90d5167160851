import { onTestFinished } from 'vitest'
import { type StoreWarning, warningChannel } from '../../src/index.ts'

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
