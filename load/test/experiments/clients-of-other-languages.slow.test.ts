import { expect, test } from 'vitest'
import { build } from '../../src/experiments/clients/builds.ts'
import { expectClients } from '../support/clients.ts'

// Compiles clients in Go and Rust, which takes minutes on a new machine: `.ci/run` leaves this file out, and
// `.github/workflows/weekly.yml` runs it.
const BUILD_MS = 600_000

test.for(['go', 'rust', 'bun'] as const)(
  'measures the clients for %s',
  { timeout: BUILD_MS },
  async (runtime, { signal, skip }) => {
    const versions = await build(runtime, signal).catch((error: Error) => skip(error.message))
    skip(versions === null, `${runtime} is missing`)
    expect(versions).toMatch(/\d+\.\d+/)
    await expectClients(runtime)
  },
)
