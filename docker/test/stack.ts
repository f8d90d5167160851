import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import { until } from '@onetrip/stack/until.ts'
import { outputOf, run } from './command.ts'

const READY_MS = 300_000

// The tests set these themselves; values from the shell are ignored.
const OUR_SETTINGS = [
  'REDIS_BUILD',
  'REDIS_IO_THREADS',
  'REDIS_APPENDFSYNC',
  'STRATEGY',
  'PUBLISH_ADDRESS',
  'LOGIN_LIMIT_PER_ADDRESS',
  'LOAD_RESULTS',
  'COMPOSE_PROFILES',
]

/** A container as `docker inspect` shows it: the fields that the tests use. */
export interface Container {
  Id: string
  Name: string
  State: {
    Status: string
    ExitCode: number
    StartedAt: string
    /** Log: the latest five checks, oldest first. */
    Health?: { Status: string; Log: { Start: string; ExitCode: number; Output: string }[] }
  }
  Config: { Env: string[]; Labels: Record<string, string> }
  HostConfig: { ReadonlyRootfs: boolean; Init: boolean; CapDrop: string[]; Memory: number }
  NetworkSettings: {
    Ports: Record<string, { HostIp: string; HostPort: string }[] | null>
    Networks: Record<string, { Gateway: string }>
  }
}

/** Whether a container has completed its job, such as forming the cluster. */
const hasCompleted = ({ Status, ExitCode, Health }: Container['State']) =>
  Status === 'exited' && ExitCode === 0 && Health === undefined

export type Stack = Awaited<ReturnType<typeof createStack>>

/**
 * Runs docker-compose.yml as a separate project, on free ports of loopback.
 *
 * @param command Compose.
 * @param overrides Compose files (YAML) that are added to ours.
 */
export async function createStack(command: readonly string[], ...overrides: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-compose-'))
  const files = [join(repository, 'docker-compose.yml')]
  for (const [index, override] of overrides.entries()) {
    files.push(join(folder, `override-${index}.yml`))
    await writeFile(join(folder, `override-${index}.yml`), override)
  }
  const ports = await freePorts(3)
  const [pooled = 0, naive = 0, cluster = 0] = ports
  const project = `onetrip-test-${process.pid}-${pooled}`
  const canWait = !(await outputOf([...command, 'version', '--short'])).startsWith('1.')
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    COMPOSE_PROJECT_NAME: project,
    COMPOSE_FILE: files.join(delimiter),
    API_PORT: String(pooled),
    NAIVE_PORT: String(naive),
    CLUSTER_PORT: String(cluster),
  }
  for (const name of OUR_SETTINGS) delete env[name]
  const label = `label=com.docker.compose.project=${project}`

  /** Runs Compose. Returns its standard output; throws if it fails. */
  const compose = (args: readonly string[], settings: NodeJS.ProcessEnv = {}) =>
    outputOf([...command, ...args], { env: { ...env, ...settings } })

  /** Runs Compose. Any exit code is accepted. */
  const tryCompose = (args: readonly string[]) => run([...command, ...args], { env })

  async function containers(service?: string): Promise<Container[]> {
    const filters = service ? [label, `label=com.docker.compose.service=${service}`] : [label]
    const flags = filters.flatMap((filter) => ['--filter', filter])
    const ids = (await outputOf(['docker', 'ps', '-aq', ...flags])).split('\n').filter(Boolean)
    if (ids.length === 0) return []
    return JSON.parse(await outputOf(['docker', 'inspect', ...ids]))
  }

  async function container(service: string): Promise<Container> {
    const [first] = await containers(service)
    if (!first) throw new Error(`service ${service} has no container`)
    return first
  }

  /** Calls `work` repeatedly until it resolves with undefined; otherwise it resolves with the reason. */
  async function untilDone(what: string, work: () => Promise<string | undefined>): Promise<void> {
    let reason: string | undefined
    const done = async () => {
      reason = await work()
      return reason === undefined
    }
    if (await until(done, { timeoutMs: READY_MS, everyMs: 250 })) return
    const { output } = await tryCompose(['logs', '--tail', '40'])
    throw new Error(`not ${what} after ${READY_MS / 1000} s: ${reason}\n${output}`)
  }

  /** Waits until every container of these services (default: all) is healthy. */
  async function untilHealthy(...services: string[]): Promise<void> {
    const isWanted = ({ Config }: Container) =>
      services.length === 0 || services.includes(Config.Labels['com.docker.compose.service'] ?? '')
    await untilDone('healthy', async () => {
      const wanted = (await containers()).filter(isWanted)
      const unwell = wanted.filter(
        ({ State }) => State.Health?.Status !== 'healthy' && !hasCompleted(State),
      )
      return wanted.length > 0 && unwell.length === 0
        ? undefined
        : unwell.map(({ Name, State }) => `${Name} ${State.Health?.Status ?? State.Status}`).join()
    })
  }

  return {
    urls: {
      pooled: `http://127.0.0.1:${pooled}`,
      naive: `http://127.0.0.1:${naive}`,
      /** Exists only with the profile `cluster`. */
      cluster: `http://127.0.0.1:${cluster}`,
    },
    compose,
    try: tryCompose,
    containers,
    container,
    until: untilDone,
    untilHealthy,

    /** Runs a shell command in a container of a service, without a terminal. */
    exec: (service: string, script: string) =>
      tryCompose(['exec', '-T', service, 'sh', '-c', script]),

    /** Runs redis-cli in a container of a service, as a user of users.acl. Returns the output. */
    async redisCli(service: string, user: string, ...words: string[]): Promise<string> {
      const password = `$(cat /secrets/${user}/redis-password)`
      const script = `REDISCLI_AUTH=${password} redis-cli --user ${user} ${words.join(' ')}`
      const { stdout } = await tryCompose(['exec', '-T', service, 'sh', '-c', script])
      return stdout.trim()
    },

    /** Runs a command in one container. Returns its standard output. */
    inContainer: (id: string, words: readonly string[]) =>
      outputOf(['docker', 'exec', id, ...words]),

    /** Starts the services and waits until all are healthy. (Compose 1.29 has no `--wait`.) */
    async up(settings: NodeJS.ProcessEnv = {}, ...args: readonly string[]): Promise<void> {
      const words = ['up', '-d', '--no-build', ...(canWait ? ['--wait'] : []), ...args]
      // On a busy machine, health checks can time out for a while. Then Compose gives up.
      await untilDone('started', () =>
        compose(words, settings).then(
          () => undefined,
          (error) => {
            if (messageOf(error).includes('unhealthy')) return messageOf(error)
            throw error
          },
        ),
      )
      if (!canWait) await untilHealthy()
    },

    /** The health checks of a service's container that started after `time`, oldest first. */
    async checksSince(service: string, time: number) {
      const { State } = await container(service)
      return (State.Health?.Log ?? [])
        .filter(({ Start }) => Date.parse(Start) > time)
        .map(({ ExitCode, Output }) => ({ exitCode: ExitCode, output: Output }))
    },

    /** Removes everything, including volumes. Returns the ids of what is left. */
    async down(): Promise<string[]> {
      const profiles = ['--profile', 'load', '--profile', 'cluster']
      await compose([...profiles, 'down', '--volumes', '--remove-orphans'])
      await rm(folder, { recursive: true, force: true })
      const lists = [
        ['ps', '-aq'],
        ['volume', 'ls', '-q'],
        ['network', 'ls', '-q'],
      ].map((list) => outputOf(['docker', ...list, '--filter', label]))
      return (await Promise.all(lists)).flatMap((text) => text.split('\n').filter(Boolean))
    },
  }
}
