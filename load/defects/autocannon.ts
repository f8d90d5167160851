import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { packageVersion } from '../src/measure/machine.ts'
import { tableText } from '../src/reporting/terminal.ts'
import { findDefects } from './checks.ts'

// Why this repository does not take latencies at a fixed rate from autocannon (docs/generators.md): shows
// what it reports beside what is true. To be run again when its version changes.

const command = new Command('npm run autocannon-defects --')
  .description('Shows what autocannon reports beside what is true.')
  .option('--seconds <n>', 'length of each run; all run at the same time', wholeNumber(2, 60), 4)
  .parse()
const { seconds } = command.opts<{ seconds: number }>()

const version = packageVersion('autocannon')
const findings = await step('Running autocannon', () => findDefects(seconds))
print(
  tableText({
    caption: version,
    texts: [0],
    head: ['', 'true', 'autocannon'],
    rows: findings.map(({ what, truth, reported, wrong }) => [
      what,
      truth,
      wrong ? reported : `${reported} (right)`,
    ]),
  }),
)
const causes = Map.groupBy(findings, ({ cause }) => cause)
print(`\n${[...causes.keys()].map((cause) => `- ${cause}`).join('\n')}`)

const right = findings.filter(({ wrong }) => !wrong)
if (right.length > 0) {
  print(`\nNot seen with this version: ${right.map(({ what }) => what).join('; ')}.`)
  process.exitCode = 1
}
