import { createInterface } from 'node:readline'
import { saturateByAutocannon } from '@onetrip/stack/measure/autocannon.ts'
import { workload } from '@onetrip/stack/measure/workload.ts'
import { surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import type { GeneratorRun } from './generator-process.ts'

// The load generator of the race as a program. Runs one load per line of standard input; exits when the input ends.

const report = (event: string, data: object) =>
  process.stdout.write(`${JSON.stringify({ event, data })}\n`)

async function run(text: string): Promise<void> {
  const { url, seconds, ...options }: GeneratorRun = JSON.parse(text)
  const result = await saturateByAutocannon({
    ...{ url, seconds },
    owned: false,
    calls: workload(options),
    signal: new AbortController().signal,
    finish: true,
    onSample: (sample) => report('sample', sample),
  })
  report('result', result)
}

surviveClosedOutput(() => process.exit(1))
createInterface({ input: process.stdin })
  .on('line', (text) => void run(text))
  .on('close', () => process.exit())
report('ready', {})
