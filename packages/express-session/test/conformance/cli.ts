import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import buildRedis from '@onetrip/stack/testing/build-redis.ts'
import { groups, others, ours, run, startRedis } from './suite.ts'
import { pagePath, type Row, withTable } from './table.ts'

// npm run conformance: runs every case against every way of keeping sessions, and prints the table.

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    case: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help) {
  console.log(`usage: npm run conformance -- [--only NAME...] [--case TEXT] [--write]

Runs real applications on a real Redis and counts how often each promise holds: about two minutes.
  --only    applications whose name contains this text; may be repeated
  --case    cases whose name contains this text
  --write   updates the table in docs/measurements/session-stores.md; needs all cases and applications`)
  process.exit()
}
if (values.write && (values.only || values.case)) {
  console.error('--write needs all cases and applications: leave out --only and --case.')
  process.exit(1)
}

const contenders = [...ours, ...others].filter(
  ({ name }) => values.only?.some((text) => name.includes(text)) ?? true,
)
const rows: Row[] = []
await buildRedis() // the first time, it compiles for a minute
const redis = await startRedis()
try {
  for (const [group, cases] of groups) {
    for (const one of cases.filter(({ name }) => name.includes(values.case ?? ''))) {
      console.log(`\n${one.name}`)
      const counts = new Map<string, Row['counts'] extends Map<string, infer C> ? C : never>()
      for (const contender of contenders) {
        const count = await run(one, contender, redis)
        counts.set(contender.name, count)
        console.log(`  ${contender.name.padEnd(38)}${count ? `${count.held} of ${count.of}` : '-'}`)
      }
      rows.push({ group, name: one.name, counts })
    }
  }
} finally {
  await redis.stop()
}
if (values.write) {
  await writeFile(pagePath, withTable(await readFile(pagePath, 'utf8'), rows))
  console.log(`\n${pagePath} has the new table.`)
}
process.exit()
