import { randomBytes } from 'node:crypto'
import { articleKeys, createSessionStore, StoreError } from '@onetrip/session-store'
import {
  finishMigration,
  type MigrationProgress,
  migrate,
  readySides,
  surveyMigration,
} from '@onetrip/session-store/migration'
import { Command, InvalidArgumentError, Option } from 'commander'
import { loadConfig } from '../config.ts'
import { messageWithCause } from '../error-message.ts'
import { redisLocation } from '../redis-location.ts'
import { targetSide } from './stores.ts'

interface Flags {
  from?: string
  to: string
  partitions?: string
  dryRun?: boolean
  finish?: boolean
  offline?: boolean
  rate?: number
  batchSize: number
}

const DEADLINE_MS = 10_000
/** Interval of progress lines. */
const PROGRESS_MS = 2_000

const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
}

const command = new Command('npm run scale:migrate --')
  .description(
    'Moves sessions and item counts from a single Redis to a Redis Cluster (or to another single Redis with partitioned keys) without downtime. Before the first run, deploy every API with REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME=source, and then every API with REDIS_MIGRATE_HOME=target: see docs/cluster.md. After a failure, run the same command again: nothing is moved or counted twice.',
  )
  .option('--from <url>', 'source: URL of the single Redis (env: REDIS_URL)')
  .addOption(
    new Option(
      '--to <url>',
      'target: redis+cluster://host:port,host:port with some nodes of the cluster; or the URL of a single Redis, from which an API cannot serve later',
    )
      .env('REDIS_MIGRATE_TO')
      .makeOptionMandatory(),
  )
  .option(
    '--partitions <number>',
    'number of partitions, the same as for the APIs (env: REDIS_PARTITIONS; default: 64)',
  )
  .option('--dry-run', 'show what would be moved; write nothing')
  .addOption(
    new Option(
      '--finish',
      'end the migration; the last step, after every API uses only the target',
    ).conflicts('dryRun'),
  )
  .option('--offline', 'migrate while no API is running')
  .option('--rate <number>', 'maximum sessions and items per second', wholeNumber(1, 1e9))
  .option('--batch-size <number>', 'sessions moved by one script call', wholeNumber(1, 100), 50)
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The settings REDIS_PASSWORD_FILE and REDIS_TLS_… work as for the API, so passwords need not be on the command line.

Examples:
  npm run scale:migrate -- --from redis://10.0.0.1:6379 --to redis+cluster://10.0.1.1:6379,10.0.1.2:6379 --dry-run
  npm run scale:migrate -- --from redis://10.0.0.1:6379 --to redis+cluster://10.0.1.1:6379,10.0.1.2:6379 --rate 5000`,
  )

const formatted = (value: number) => value.toLocaleString('en-US')

/** Prints the progress to standard error, at most one line per interval. */
function progressReport() {
  const startedAt = performance.now()
  let shownAt = startedAt
  return ({ phase, moved, items }: MigrationProgress): void => {
    const now = performance.now()
    if (now - shownAt < PROGRESS_MS) return
    shownAt = now
    const perSecond = formatted(Math.round((1000 * (moved + items)) / (now - startedAt)))
    const counts = phase === 'counts' ? `, ${formatted(items)} item counts compared` : ''
    process.stderr.write(`${formatted(moved)} sessions moved${counts} (${perSecond}/s)\n`)
  }
}

/** The settings of the API, overridden by the command line. */
function configOf({ from, to, partitions }: Flags) {
  return loadConfig({
    ...process.env,
    ...(from !== undefined && { REDIS_URL: from }),
    REDIS_MIGRATE_TO: to,
    ...(partitions !== undefined && { REDIS_PARTITIONS: partitions }),
    REDIS_MIGRATE_HOME: 'target',
    // A random secret: this program neither issues nor verifies tokens.
    SESSION_SECRETS: randomBytes(32).toString('hex'),
    SESSION_SECRETS_FILE: '',
    STRATEGY: 'batch',
  })
}

const NOT_OPENED = `no API has started with REDIS_MIGRATE_HOME=target yet.
APIs without this setting would lose the sessions that are moved: see docs/cluster.md.
If no API is running, use --offline.`

async function run(flags: Flags, signal: AbortSignal): Promise<string[]> {
  const config = configOf(flags)
  const options = {
    tokens: { secrets: config.SESSION_SECRETS.split(',') },
    deadlineMs: DEADLINE_MS,
    janitor: 'elsewhere',
  } as const
  const sides = {
    from: {
      store: createSessionStore({ ...options, ...redisLocation(config), keys: articleKeys }),
      keys: articleKeys,
    },
    to: targetSide(config, options),
  }
  try {
    await readySides(sides, config.STARTUP_DEADLINE_MS)
    if (flags.finish) {
      await finishMigration(sides)
      return ['The migration is finished. You can stop the source.']
    }
    const { opened, sessions, moving, items } = await surveyMigration(sides)
    if (flags.dryRun) {
      return [
        'Dry run: nothing was written. The source has',
        `  ${formatted(sessions)} sessions to move, and ${formatted(moving)} left by an interrupted run`,
        `  counts of ${formatted(items)} items`,
      ]
    }
    if (!opened && !flags.offline) throw new Error(NOT_OPENED)
    return await move(sides, flags, signal)
  } finally {
    await Promise.all([sides.from.store.close(), sides.to.store.close()])
  }
}

async function move(
  sides: Parameters<typeof migrate>[0],
  { rate, batchSize }: Flags,
  signal: AbortSignal,
): Promise<string[]> {
  const startedAt = performance.now()
  const options = { batchSize, signal, onProgress: progressReport(), ...(rate && { rate }) }
  const done = await migrate(sides, options)
  const { sessions, moving } = await surveyMigration(sides)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const left = sessions + moving
  return [
    `Moved ${formatted(done.moved)} sessions and ${formatted(done.views)} views of ${formatted(done.items)} items in ${seconds} s.`,
    left > 0
      ? `The source has ${formatted(left)} sessions again: some APIs still create sessions there. Set REDIS_MIGRATE_HOME=target for every API, then run this command again.`
      : 'The source has no more sessions. Deploy every API with the target alone (in REDIS_URL, without REDIS_MIGRATE_…; step 5 in docs/cluster.md), then run this command with --finish.',
  ]
}

function errorText(error: unknown): string {
  const retry =
    error instanceof StoreError && error.statusCode === 503
      ? '\nNo session or view was lost. Run the same command again to continue.'
      : ''
  return `${messageWithCause(error)}${retry}`
}

const stop = new AbortController()
const stopped = new Error('Stopped. Run the same command again to continue.')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => stop.abort(stopped))
}
command.action(async (flags: Flags) => {
  try {
    for (const text of await run(flags, stop.signal)) process.stdout.write(`${text}\n`)
  } catch (error) {
    process.stderr.write(`error: ${errorText(error)}\n`)
    process.exitCode = 1
  }
})
await command.parseAsync()
