import { redisOfEnvironment } from './address.ts'
import { listenForInterrupts } from './interrupt.ts'
import { keptSecret, places } from './places.ts'
import { checkPorts, type WantedPort } from './ports.ts'
import { describeError, Problem } from './problem.ts'
import { endOf } from './program.ts'
import { leftBehind, removeRecord, runningStack, writeRecord } from './record.ts'
import { buildRedis } from './redis.ts'
import { redisFacts } from './redis-info.ts'
import { type Stack, startStack } from './stack.ts'
import { banner } from './start/banner.ts'
import { type StartSettings, settingsOf, startCommand } from './start/settings.ts'
import { print, printError, step, surviveClosedOutput } from './terminal.ts'

const place = places()

async function checkThatItCanStart(settings: StartSettings): Promise<void> {
  const running = await runningStack(place.record)
  if (running) {
    throw new Problem(
      `Onetrip is already running (process ${running.pid}, since ${running.startedAt}):\n` +
        running.apis.map(({ variant, url }) => `  ${variant.padEnd(10)} ${url}\n`).join('') +
        `Stop it with Ctrl-C where it runs, or with: kill ${running.pid}\n` +
        'For a second one beside it, set ONETRIP_STATE to another folder, and other ports.',
    )
  }
  const left = await leftBehind(place.record)
  if (left.length > 0) {
    throw new Problem(
      'An earlier Onetrip was killed, and some of its programs are still running:\n' +
        left.map(({ what, pid }) => `  ${what}, process ${pid}\n`).join('') +
        `End them with: kill ${left.map(({ pid }) => pid).join(' ')}`,
    )
  }
  await checkPorts(wantedPorts(settings))
}

function wantedPorts({ host, pooledPort, naivePort, redis }: StartSettings): WantedPort[] {
  const apis: WantedPort[] = [
    { port: pooledPort, host, what: 'the pooled API', how: '--port or PORT' },
    { port: naivePort, host, what: 'the naive API', how: '--naive-port or NAIVE_PORT' },
  ]
  if (redis.kind === 'foreign') return apis
  const how = '--redis-port or REDIS_PORT'
  return [...apis, { port: redis.port, host: '127.0.0.1', what: 'Redis', how }]
}

async function start(settings: StartSettings, signal: AbortSignal): Promise<Stack> {
  const { host, pooledPort, naivePort, installed } = settings
  await checkThatItCanStart(settings)
  const foreign = await redisOfEnvironment()
  const redis: StartSettings['redis'] =
    foreign === undefined ? settings.redis : { kind: 'foreign', url: foreign }
  if (redis.kind === 'foreign') await redisFacts(redis.url)
  else if (installed === null) await buildRedis(redis.build, signal)
  const sessionSecret = await keptSecret(place.secret)
  process.env.REPORT_FILE ||= place.report // what the APIs show at /report
  return await step('Starting Redis and the APIs', () =>
    startStack({
      redis,
      host,
      apis: [
        { variant: 'batch', port: pooledPort },
        { variant: 'naive', port: naivePort },
      ],
      sessionSecret,
      ...(process.env.LOG_LEVEL && { logLevel: process.env.LOG_LEVEL }),
      signal,
      onApiLine: (variant, line) => print(`${variant}: ${line}`),
    }),
  )
}

/** Runs the stack until it is interrupted or loses a program. Returns the exit code. */
async function run(settings: StartSettings, signal: AbortSignal): Promise<number> {
  const stack = await start(settings, signal)
  try {
    const facts = await redisFacts(stack.redis.url)
    await writeRecord(place.record, {
      pid: process.pid,
      startedAt: new Date().toISOString(),
      redis: {
        url: stack.redis.url,
        transport: stack.redis.transport,
        pid: stack.redis.pid,
        build:
          settings.redis.kind === 'foreign'
            ? 'foreign'
            : settings.installed === null
              ? settings.redis.build
              : 'installed',
      },
      apis: [...stack.apis],
    })
    print(banner(stack, facts, settings))
    const interrupted = new Promise<null>((resolve) => {
      if (signal.aborted) resolve(null)
      signal.addEventListener('abort', () => resolve(null))
    })
    const lost = await Promise.race([stack.lost, interrupted])
    if (lost === null) return 0
    printError(`\n${(await endOf(lost)).message}`)
    printError('Stopping the rest.')
    return 1
  } finally {
    await step('Stopping the APIs, then Redis', () => stack.stop())
    await removeRecord(place.record)
  }
}

surviveClosedOutput()
const interrupts = listenForInterrupts(print, 0)
try {
  const command = startCommand()
  command.parse()
  process.exitCode = await run(settingsOf(command, process.env), interrupts.signal)
} catch (error) {
  if (!interrupts.signal.aborted) {
    printError(describeError(error))
    process.exitCode = 1
  } else {
    process.exitCode = 0
  }
} finally {
  interrupts.dispose()
}
if (interrupts.signal.aborted) print('Stopped.')
