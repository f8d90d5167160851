import { beforeAll, describe, expect, test } from 'vitest'
import { sanitizers } from '../src/builds.ts'
import { reportsIn } from './reports.ts'
import { serverOf, startServer } from './server.ts'
import { stress } from './stress.ts'

const SECONDS = 15

const env = {
  // Goes on after a race, so that all are seen; reports have their own code at the end otherwise.
  TSAN_OPTIONS: 'halt_on_error=0 exitcode=0 history_size=4',
  ASAN_OPTIONS: 'detect_leaks=1 exitcode=23',
}

describe.each(sanitizers)('with the %s sanitizer', (sanitizer) => {
  const programs = { stock: '', patched: '' }
  beforeAll(async () => {
    programs.stock = await serverOf('stock', { sanitizer })
    programs.patched = await serverOf('patched', { sanitizer })
  })

  test.each(['1', '3'])(
    'churn gives no report that stock does not give, %s I/O threads',
    async (threads) => {
      const seen = { stock: new Set<string>(), patched: new Set<string>() }
      for (const build of ['stock', 'patched'] as const) {
        const server = await startServer(
          programs[build],
          { 'io-threads': threads, appendonly: 'yes', maxclients: '200' },
          { env },
        )
        const done = await stress(server.port, SECONDS)
        server.program.signal('SIGTERM')
        const { code } = await server.program.exited
        const reports = reportsIn(server.lines)
        console.log(
          `${build}: ${done.whole} whole conversations, ${done.cut} cut off, ended with ${code}`,
        )
        for (const [name, text] of reports) {
          seen[build].add(name)
          if (build === 'patched' && !seen.stock.has(name)) console.log(text)
        }
        if (build === 'patched' && reports.size === 0) expect(code).toBe(0)
        expect(done.whole).toBeGreaterThan(100)
      }
      console.log(
        `in both: ${[...seen.patched].filter((name) => seen.stock.has(name)).join('; ') || 'no report'}`,
      )
      expect([...seen.patched].filter((name) => !seen.stock.has(name))).toEqual([])
    },
  )
})
