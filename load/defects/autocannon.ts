import { wholeNumber } from '@onetrip/stack/parsers.ts'
import { print, step } from '@onetrip/stack/terminal.ts'
import { Command } from 'commander'
import { packageVersion } from '../src/measure/machine.ts'
import { tableText } from '../src/reporting/terminal.ts'
import { findDefects } from './checks.ts'

// Shows why this repository does not use autocannon for latencies at a fixed rate (docs/generators.md): compares its
// reports with the truth. Run it again when the version of autocannon changes.

const command = new Command('npm run autocannon-defects --')
  .description('Compares reports of autocannon with the truth.')
  .option('--seconds <n>', 'length of the runs, which are concurrent', wholeNumber(2, 60), 4)
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
      wrong ? reported : `${reported} (correct)`,
    ]),
  }),
)
const causes = Map.groupBy(findings, ({ cause }) => cause)
print(`\n${[...causes.keys()].map((cause) => `- ${cause}`).join('\n')}`)

const right = findings.filter(({ wrong }) => !wrong)
if (right.length > 0) {
  print(`\nNot reproduced with this version: ${right.map(({ what }) => what).join('; ')}.`)
  process.exitCode = 1
}
