import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { registerHooks } from 'node:module'
import { parseArgs } from 'node:util'
import { mutations } from './mutations.ts'

// npm run simulate: runs simulated services with new seeds, and prints each seed. A failure prints the seed that repeats it.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    hours: { type: 'string', default: '24' },
    seed: { type: 'string' },
    mutation: { type: 'string' },
    mutations: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help) {
  console.log(`usage: npm run simulate -- [--minutes 1] [--hours 24] [--seed N] [--mutations | --mutation NAME]

Runs the real store on a Redis in memory with a virtual clock and faults that a seed decides.
  --minutes    how long to run, a new seed after the other
  --hours      simulated hours of each seed
  --seed       only this one: repeats a failure
  --mutations  shows that the simulation finds faults: runs it with each of ${mutations.length} faults in the store
  --mutation   with one of them: ${mutations.map(({ name }) => name).join('; ')}`)
  process.exit()
}

const numberOf = (name: 'minutes' | 'hours' | 'seed'): number => {
  const number = Number(values[name])
  if (Number.isFinite(number) && number >= 0) return number
  console.error(`--${name} must be a number, at least 0`)
  process.exit(1)
}
const limitMs = 60_000 * numberOf('minutes')
const hours = numberOf('hours')

if (values.mutations) process.exit(await findAll())
if (values.mutation !== undefined) mutate(values.mutation)
const { simulate } = await import('./simulate.ts')
if (values.seed === undefined) {
  await simulateFor(limitMs)
} else {
  const { calls, faults } = await simulate(numberOf('seed'), hours)
  console.log(
    `seed ${values.seed}: ${hours} hours, ${calls} calls, ${faults} faults: nothing wrong`,
  )
}
process.exit()

async function simulateFor(limitMs: number): Promise<void> {
  const began = process.hrtime.bigint() // the virtual clock does not change it
  const elapsedMs = () => Number(process.hrtime.bigint() - began) / 1e6
  const total = { hours: 0, calls: 0, faults: 0 }
  for (let seed = Math.floor(Math.random() * 2 ** 31); elapsedMs() < limitMs; seed++) {
    console.log(`seed ${seed}`)
    const report = await simulate(seed, hours)
    for (const name of ['hours', 'calls', 'faults'] as const) total[name] += report[name]
  }
  const seconds = (elapsedMs() / 1000).toFixed(0)
  console.log(
    `${total.hours} simulated hours, ${total.calls} calls, ${total.faults} faults in ${seconds} s: nothing wrong`,
  )
}

/** Loads the store with this fault. */
function mutate(name: string): void {
  const mutation = mutations.find((one) => one.name === name)
  if (!mutation) {
    console.error(`There is no mutation "${name}": see --help.`)
    process.exit(1)
  }
  const { file, find, replace } = mutation
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith(`/packages/${file}`)) return loaded
      const source = String(loaded.source)
      if (!source.includes(find)) throw new Error(`${file} does not contain: ${find}`)
      return { ...loaded, source: source.replace(find, replace) }
    },
  })
}

/** Runs one process for each mutation. Returns the exit code. */
async function findAll(): Promise<number> {
  let missed = 0
  for (const { name } of mutations) {
    const from = Date.now()
    const args = [import.meta.filename, '--mutation', name, '--minutes', '2', '--hours', '6']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let text = ''
    child.stderr.on('data', (data) => {
      text += data
    })
    const [code] = await once(child, 'close')
    const found = /^Error: (seed \d+: .*)$/m.exec(text)?.[1]
    if (code === 0 || found === undefined) missed++
    console.log(
      `${name}: ${found ? `found after ${((Date.now() - from) / 1000).toFixed(0)} s` : 'NOT FOUND'}`,
      found ?? text.slice(0, 500),
    )
  }
  return missed === 0 ? 0 : 1
}
