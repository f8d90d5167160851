import { randomBytes } from 'node:crypto'
import { styleText } from 'node:util'
import {
  createSessionStore,
  documentKeys,
  finishMigration,
  type MigrationProgress,
  migrate,
  readySides,
  StoreError,
  surveyMigration,
} from '@onetrip/session-store'
import { Command, InvalidArgumentError, Option } from 'commander'
import { loadConfig } from '../config.ts'
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
/** Between two lines of progress: on a terminal, where the line is replaced, and elsewhere. */
const TERMINAL_MS = 200
const ELSEWHERE_MS = 10_000

const wholeNumber = (least: number, most: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
}

const command = new Command('npm run scale:migrate --')
  .description(
    'Moves sessions and item counts from a single Redis to a Redis Cluster, or to another single Redis with partitioned keys, while both serve. Before the first run every API needs REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME=target: see docs/scaling-migration.md. Run it again after any failure: nothing moves or counts twice.',
  )
  .option('--from <url>', 'the single Redis (env: REDIS_URL)')
  .addOption(
    new Option(
      '--to <nodes>',
      'some nodes, as host:port,host:port; or a URL, which the API cannot serve from',
    )
      .env('REDIS_MIGRATE_TO')
      .makeOptionMandatory(),
  )
  .option('--partitions <number>', 'as the APIs have it (env: REDIS_PARTITIONS; default: 64)')
  .option('--dry-run', 'only show what there is to move')
  .addOption(
    new Option('--finish', 'the last step, when every API serves from the target alone').conflicts(
      'dryRun',
    ),
  )
  .option('--offline', 'no API serves: begin although none has REDIS_MIGRATE_HOME=target')
  .option('--rate <number>', 'at most so many sessions and items per second', wholeNumber(1, 1e9))
  .option('--batch-size <number>', 'sessions that one script moves', wholeNumber(1, 100), 50)
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The nodes get the user, password and TLS of the source; a URL has its own. REDIS_PASSWORD_FILE and REDIS_TLS_… are
read as by the API, so a password need not be in the command line.

Examples:
  npm run scale:migrate -- --from redis://10.0.0.1:6379 --to 10.0.1.1:6379,10.0.1.2:6379 --dry-run
  npm run scale:migrate -- --from redis://10.0.0.1:6379 --to 10.0.1.1:6379,10.0.1.2:6379 --rate 5000`,
  )

const shown = (value: number) => value.toLocaleString('en-US')

/** Shows what has been done so far, now and then. */
function progressLine() {
  const live = process.stderr.isTTY
  const everyMs = live ? TERMINAL_MS : ELSEWHERE_MS
  const startedAt = performance.now()
  let shownAt = live ? 0 : startedAt
  return {
    show({ phase, moved, items }: MigrationProgress): void {
      const now = performance.now()
      if (now - shownAt < everyMs) return
      shownAt = now
      const perSecond = shown(Math.round((1000 * (moved + items)) / (now - startedAt)))
      const counts = phase === 'counts' ? `, ${shown(items)} item counts compared` : ''
      const text = `${shown(moved)} sessions moved${counts} (${perSecond}/s)`
      process.stderr.write(live ? `\r\x1b[2K${text}` : `${text}\n`)
    },
    clear: () => void (live && process.stderr.write('\r\x1b[2K')),
  }
}

/** The settings of the API, with those of the command line in their place. */
function configOf({ from, to, partitions }: Flags) {
  return loadConfig({
    ...process.env,
    ...(from !== undefined && { REDIS_URL: from }),
    REDIS_MIGRATE_TO: to,
    ...(partitions !== undefined && { REDIS_PARTITIONS: partitions }),
    REDIS_MIGRATE_HOME: 'target',
    // Of an API on the target alone, as there are when the migration is finished.
    ...{ REDIS_CLUSTER: '', REDIS_USERNAME: '', REDIS_TLS: 'false' },
    // No token is issued or read.
    SESSION_SECRETS: randomBytes(32).toString('hex'),
    SESSION_SECRETS_FILE: '',
    STRATEGY: 'batch',
  })
}

const NOT_OPENED = `no API has served with REDIS_MIGRATE_HOME=target yet.
An API without it would log out the sessions that move: see docs/scaling-migration.md.
If no API serves at all, use --offline.`

async function run(flags: Flags, signal: AbortSignal): Promise<string[]> {
  const config = configOf(flags)
  const options = {
    tokens: { secrets: config.SESSION_SECRETS.split(',') },
    deadlineMs: DEADLINE_MS,
    janitor: false,
  } as const
  const sides = {
    from: {
      store: createSessionStore({ ...options, ...redisLocation(config), keys: documentKeys }),
      keys: documentKeys,
    },
    to: targetSide(config, options),
  }
  try {
    await readySides(sides, config.STARTUP_DEADLINE_MS)
    if (flags.finish) {
      await finishMigration(sides)
      return ['The migration is finished. The source can be stopped.']
    }
    const { opened, sessions, moving, items } = await surveyMigration(sides)
    if (flags.dryRun) {
      return [
        'Dry run: nothing was written. The source holds',
        `  ${shown(sessions)} sessions, and ${shown(moving)} that an interrupted move left on their way`,
        `  counts of ${shown(items)} items`,
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
  const line = progressLine()
  try {
    const onProgress = (progress: MigrationProgress) => line.show(progress)
    const done = await migrate(sides, { batchSize, signal, onProgress, ...(rate && { rate }) })
    const { sessions, moving } = await surveyMigration(sides)
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const left = sessions + moving
    return [
      `Moved ${shown(done.moved)} sessions and ${shown(done.views)} views of ${shown(done.items)} items in ${seconds} s.`,
      left > 0
        ? `${shown(left)} sessions are in the source: some APIs still begin them there. Run it again when every API has REDIS_MIGRATE_HOME=target.`
        : 'The source holds no sessions any more. Remove REDIS_MIGRATE_… and REDIS_URL from every API, then run it with --finish.',
    ]
  } finally {
    line.clear()
  }
}

/** What to print about an error. */
function described(error: unknown): string {
  const { message, cause } = error as Error
  const reason =
    cause instanceof Error ? ` (${cause.message || (cause as { code?: string }).code})` : ''
  const retry =
    error instanceof StoreError && error.statusCode === 503
      ? '\nNo session and no view is lost. Run the same command again to go on.'
      : ''
  return `${message}${reason}${retry}`
}

const stop = new AbortController()
const stopped = new Error('Stopped. Run the same command again to go on.')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => stop.abort(stopped))
}
command.action(async (flags: Flags) => {
  try {
    for (const text of await run(flags, stop.signal)) process.stdout.write(`${text}\n`)
  } catch (error) {
    process.stderr.write(`${styleText('red', 'error:')} ${described(error)}\n`)
    process.exitCode = 1
  }
})
await command.parseAsync()
