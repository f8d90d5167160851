import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { portsFrom } from './cluster.ts'
import { listenForInterrupts } from './interrupt.ts'
import { keptSecret, places, writableFolder } from './places.ts'
import { checkPorts, type WantedPort } from './ports.ts'
import { describeError, Problem } from './problem.ts'
import { endOf } from './program.ts'
import { removeRecord, runningStack, writeRecord } from './record.ts'
import { redisFacts } from './redis-info.ts'
import { type Stack, startStack } from './stack.ts'
import { banner } from './start/banner.ts'
import { type StartSettings, settingsOf, startCommand } from './start/settings.ts'
import { buildRedis, checkIoThreads } from './start-redis.ts'
import { print, printError, step, surviveClosedOutput } from './terminal.ts'

const place = places()

async function checkThatItCanStart(settings: StartSettings): Promise<void> {
  const running = await runningStack(place.record)
  if (running) {
    throw new Problem(
      `Onetrip is already running (process ${running.pid}, since ${running.startedAt}):\n` +
        running.apis.map(({ variant, url }) => `  ${variant.padEnd(10)} ${url}\n`).join('') +
        `Stop it with Ctrl-C in its terminal, or with: kill ${running.pid}\n` +
        'To run a second one, set ONETRIP_STATE to another folder and choose other ports.',
    )
  }
  const { host, port, naivePort, redis } = settings
  const ports: WantedPort[] = [
    { port, host, what: 'the batch API', how: '--port or PORT' },
    { port: naivePort, host, what: 'the naive API', how: '--naive-port or NAIVE_PORT' },
  ]
  const how = '--redis-port or REDIS_PORT'
  const ofRedis = { host: '127.0.0.1', how }
  if (redis.kind === 'own') ports.push({ ...ofRedis, port: redis.port, what: 'Redis' })
  if (redis.kind === 'cluster') {
    const own = portsFrom(redis.port).map((port) => ({ ...ofRedis, port, what: 'the cluster' }))
    ports.push(...own)
  }
  await checkPorts(ports)
}

async function start(settings: StartSettings, signal: AbortSignal): Promise<Stack> {
  const { host, port, naivePort, redis, installed } = settings
  await checkThatItCanStart(settings)
  if (redis.kind !== 'foreign') await checkIoThreads(signal)
  if (!existsSync(place.home)) await writableFolder(place.home)
  await writableFolder(place.run)
  await writableFolder(dirname(place.report)) // without the folder, the APIs print a warning
  if (redis.kind === 'foreign') await redisFacts(redis.url)
  else if (installed === null) await buildRedis(redis.build, signal)
  const sessionSecret = await keptSecret(place.secret)
  process.env.REPORT_FILE ||= place.report // the APIs serve it at /report
  return await step('Starting Redis and the APIs', (onStep) =>
    startStack({
      application: 'demo',
      redis,
      host,
      sessionSecret,
      signal,
      onStep,
      ...(settings.race && { demo: { run: place.run } }),
      apis: [
        { variant: 'batch', port },
        { variant: 'naive', port: naivePort },
      ],
      env: {
        LOG_LEVEL: process.env.LOG_LEVEL || 'warn',
      },
      onApiLine: (variant, line) => print(`${variant}: ${line}`),
      onLoss: printError,
    }),
  )
}

/** Runs the stack until an interrupt, or until a program exits unexpectedly. Returns the exit code. */
async function run(settings: StartSettings, signal: AbortSignal): Promise<number> {
  const { redis, apis, lost, stop } = await start(settings, signal)
  try {
    const facts = await redisFacts(redis.url)
    const startedAt = new Date().toISOString()
    await writeRecord(place.record, { pid: process.pid, startedAt, redis, apis })
    print(banner({ redis, apis }, facts, settings))
    await Promise.race([lost, signal.aborted || once(signal, 'abort')])
    if (signal.aborted) return 0
    printError(`\n${(await endOf(await lost)).message}`)
    printError('Stopping the other programs.')
    return 1
  } finally {
    await step('Stopping the APIs, then Redis', stop)
    await removeRecord(place.record)
  }
}

surviveClosedOutput()
const interrupts = listenForInterrupts(print, 0)
const { signal } = interrupts
try {
  const command = startCommand().parse()
  process.exitCode = await run(settingsOf(command, process.env), signal)
} catch (error) {
  if (!signal.aborted) printError(describeError(error))
  process.exitCode = signal.aborted ? 0 : 1
} finally {
  interrupts.dispose()
}
if (signal.aborted) print('Stopped.')
