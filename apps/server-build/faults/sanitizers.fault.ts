import { beforeAll, describe, expect, test } from 'vitest'
import { sanitizers } from '../src/builds.ts'
import { reportsIn } from './reports.ts'
import { serverOf, startServer } from './server.ts'
import { stress } from './stress.ts'

const SECONDS = 15
const MAX_REPEATS = 6

const env = {
  // Continues after a race, to find all. exitcode=0: reports do not change the exit code.
  TSAN_OPTIONS: 'halt_on_error=0 exitcode=0 history_size=4',
  ASAN_OPTIONS: 'detect_leaks=1 exitcode=23',
}

describe.each(sanitizers)('with the %s sanitizer', (sanitizer) => {
  const programs = { stock: '', patched: '' }
  beforeAll(async () => {
    programs.stock = await serverOf('stock', { sanitizer })
    programs.patched = await serverOf('patched', { sanitizer })
  })

  /** The reports of the sanitizer in one run, by name. */
  async function reportsOf(build: 'stock' | 'patched', threads: string) {
    const server = await startServer(
      programs[build],
      { 'io-threads': threads, appendonly: 'yes', maxclients: '200' },
      { env },
    )
    const done = await stress(server.port, SECONDS)
    server.program.signal('SIGTERM')
    const { code } = await server.program.exited
    console.log(
      `${build}: ${done.complete} complete connections, ${done.cut} cut, exit code ${code}`,
    )
    const reports = reportsIn(server.lines)
    if (build === 'patched' && reports.size === 0) expect(code).toBe(0)
    expect(done.complete).toBeGreaterThan(10)
    return reports
  }

  test.each(['1', '3'])(
    'under churn, patched has no report that stock does not have, %s I/O threads',
    async (threads) => {
      const stock = await reportsOf('stock', threads)
      const patched = await reportsOf('patched', threads)
      const onlyPatched = () => [...patched.keys()].filter((name) => !stock.has(name))
      // Races are random, and `patched` serves two or three times as many connections in the same time.
      for (let repeat = 0; repeat < MAX_REPEATS && onlyPatched().length > 0; repeat++) {
        for (const [name, text] of await reportsOf('stock', threads)) stock.set(name, text)
      }
      for (const name of onlyPatched()) console.log(patched.get(name))
      const inBoth = [...patched.keys()].filter((name) => stock.has(name))
      console.log(`in both: ${inBoth.join('; ') || 'no report'}`)
      expect(onlyPatched()).toEqual([])
    },
  )
})
