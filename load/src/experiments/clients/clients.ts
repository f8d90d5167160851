import { SessionStore } from '@onetrip/session-store'
import { seededRandom, skewedItems } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { RedisMonitor } from '@onetrip/stack/redis-info.ts'
import { type Age, ageOption } from '../../drivers/age.ts'
import { namesOption, numbersOption } from '../../drivers/redis/options.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { packageVersion } from '../../measure/machine.ts'
import { range, ratio } from '../../reporting/columns.ts'
import { asCost, asRate, product } from '../../rounds/shape.ts'
import type { Experiment } from '../experiment.ts'
import { countViews } from '../store/calls.ts'
import { build, builds } from './builds.ts'
import type { Plan } from './plan.ts'
import { type ClientName, clientNames, measureClient, runtimeOf } from './programs.ts'

interface ClientsOptions {
  clients: ClientName[]
  callers: number[]
  processes?: Age
}

interface Bench {
  server: RedisServer
  store: SessionStore
  monitor: RedisMonitor
  /** Without those that cannot be measured here. */
  clients: readonly ClientName[]
  plan: Omit<Plan, 'warmUp' | 'untilSteady' | 'seconds'>
}

const SEED = 17
/** Different items, and the length of the list of views. */
const [ITEMS, VIEWS] = [1_000, 20_000]
/** The warm-up of connections and compiler, as a share of the measured time. */
const WARM_UP = 0.7

/** The store and other clients of Redis, without HTTP. */
export const clients: Experiment<ClientsOptions, Bench> = {
  name: 'clients',
  title: 'Clients of Redis, without HTTP',
  summary: 'page views per second of the store and of other clients, without HTTP',
  about: `
Each caller records page views in a loop, with a session of its own and items by Zipf's law. Each client runs in a
process of its own (load/clients), over TCP on this machine, with the settings that its documentation recommends:
  batch, pipeline-framed  our store, which also verifies the signature of a token
  NAME-auto               five calls per view, which the client pipelines by itself
  bun                     Bun's own client, in Bun: five calls per view, too
  others                  a pipeline per view; rueidis and go-redis are written in Go, redis-rs in Rust
These need Go, Rust's cargo, or npm for Bun, and access to their packages; without the tool they are left out. After
each run, the number of views is compared with those that Redis counted. "reads" is the number of times that Redis read
from a socket: it is small if the views of many callers arrive together.

Examples:
  npm run load -- clients --clients batch,ioredis,rueidis --callers 64`,
  rounds: 3,
  duration: 3,
  quick: { rounds: 1, duration: 0.5 },
  configure(command) {
    command
      .addOption(namesOption('--clients <list>', clientNames))
      .addOption(
        numbersOption('--callers <list>', 'callers at a time', [1, 10_000], [1, 64, 1_024]),
      )
      .addOption(ageOption('a process for each run, as usual'))
  },

  factors: [{ name: 'callers' }, { name: 'client' }],
  subject: 'client',
  metrics: [
    { name: 'viewsPerSecond', label: 'views/s', ...asRate },
    { name: 'p50', label: 'p50 ms' },
    { name: 'p99', label: 'p99 ms' },
    { name: 'clientCpuMicros', label: 'client CPU µs /view', ...asCost },
    { name: 'cpuMicros', label: 'Redis CPU µs /view', ...asCost },
    { name: 'commands', label: 'commands /view', format: 'fixed' },
    { name: 'reads', label: 'reads /view', format: 'fixed' },
  ],
  progress: ['viewsPerSecond', 'p99', 'clientCpuMicros'],
  baseline: () => ({ client: 'batch' }),

  async prepare(context, { clients, callers }) {
    const packages = ['ioredis', 'iovalkey', 'redis', '@valkey/valkey-glide'].map(packageVersion)
    context.describe('software', { Clients: packages.join(', ') })
    const missing = new Set<ClientName>()
    for (const [runtime, names] of Map.groupBy(clients, runtimeOf)) {
      if (runtime === null) continue
      const { label } = builds[runtime]
      const versions = await build(runtime, context.signal)
      const lack = `not installed: ${names.join(', ')} left out`
      context.describe('software', { [label]: versions ?? lack })
      if (versions === null) for (const name of names) missing.add(name)
    }
    const server = await context.startRedis({ build: 'patched' })
    const monitor = await RedisMonitor.connect(server.url)
    context.defer(() => monitor.close())
    const secret = newSecret()
    const maxInFlight = Math.max(...callers)
    const tokens = { secrets: [secret] }
    const store = new SessionStore({ redis: server.url, tokens, janitor: 'elsewhere', maxInFlight })
    context.defer(() => store.close())
    await store.ready()
    const logIn = async (_: unknown, index: number) => {
      const user = `user-${index}`
      const { token } = await store.login(user)
      return { token, user, id: token.slice(0, token.indexOf('.')) }
    }
    const sessions = await Promise.all(Array.from({ length: maxInFlight }, logIn))
    const items = Array.from({ length: VIEWS }, skewedItems(ITEMS, seededRandom(SEED)))
    const plan = { url: `redis://127.0.0.1:${server.port}`, sessions, items, secret }
    return { server, store, monitor, plan, clients: clients.filter((name) => !missing.has(name)) }
  },

  cases: ({ clients }, { callers }) => product({ callers, client: clients }),

  async measure(one, { server, store, monitor, plan: all }, { options, context: { signal } }) {
    const client = one.client as ClientName
    const sessions = all.sessions.slice(0, Number(one.callers))
    const { duration: seconds } = options
    const untilSteady = options.processes === 'warm'
    const plan = { ...all, sessions, seconds, warmUp: seconds * WARM_UP, untilSteady }
    const read = async () => ({ ...(await monitor.read()), views: await countViews(store) })
    const before = await read()
    const { total, values } = await measureClient(server, { client, plan, signal })
    const after = await read()
    const views = after.views - before.views
    if (views !== total) {
      throw new Problem(`${client} recorded ${total} views, but Redis counted ${views}.`)
    }
    const commands = (after.commands - before.commands) / total
    const reads = (after.reads - before.reads) / total
    return { values: { ...values, commands, reads } }
  },

  sections: () => [
    {
      title: 'Page views of callers without HTTP',
      caption: 'TCP on this machine, one process of the client',
      columns: [
        range('viewsPerSecond'),
        ratio('viewsPerSecond', '× batch'),
        'p50',
        'p99',
        range('clientCpuMicros'),
        range('cpuMicros'),
        'commands',
        'reads',
      ],
    },
  ],
}
