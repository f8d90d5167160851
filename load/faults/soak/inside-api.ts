import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type ApiReading, CLOCK_STEP_MS, READ_EVERY_MS } from './readings.ts'

// Loaded into each API with --import. It prints the resources of the process after a full garbage
// collection, so that the heap has live objects only. SIGWINCH sets the clock back, and a second SIGWINCH sets it
// forward again. This affects Date.now only, which is the clock of the API.

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const rightTime = Date.now
let behindMs = 0
Date.now = () => rightTime() - behindMs
process.on('SIGWINCH', () => {
  behindMs = behindMs === 0 ? CLOCK_STEP_MS : 0
})

function report(): void {
  collectGarbage()
  const { heapUsed, rss } = process.memoryUsage()
  const reading: ApiReading = {
    heap: heapUsed,
    rss,
    descriptors: readdirSync('/dev/fd').length,
  }
  process.stdout.write(`${JSON.stringify({ soak: reading })}\n`)
}

process.stdout.on('error', () => process.exit(1)) // the soak, which reads this output, was killed
report()
setInterval(report, Number(process.env[READ_EVERY_MS])).unref()
