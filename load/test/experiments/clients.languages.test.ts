import { expect, test } from 'vitest'
import { build } from '../../src/experiments/clients/builds.ts'
import { expectClients } from '../support/clients.ts'

test.for(['go', 'rust', 'bun'] as const)(
  'measures the clients for %s',
  async (runtime, { signal, skip }) => {
    const versions = await build(runtime, signal).catch((error: Error) => skip(error.message))
    skip(versions === null, `${runtime} is missing`)
    expect(versions).toMatch(/\d+\.\d+/)
    await expectClients(runtime)
  },
)
