import { expect, test } from 'vitest'
import { build } from '../../src/experiments/clients/builds.ts'
import { expectClients } from '../support/clients.ts'

test.for(['go', 'rust', 'bun'] as const)(
  'measures the clients for %s',
  async (runtime, { signal, skip }) => {
    const versions = await build(runtime, signal).catch((error: Error) => {
      if (process.env.CI) throw error
      return skip(error.message)
    })
    skip(versions === null && !process.env.CI, `${runtime} is missing`)
    expect(versions).toMatch(/\d+\.\d+/)
    await expectClients(runtime)
  },
)
