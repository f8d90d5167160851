import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { until } from '@onetrip/stack/until.ts'
import { type Finished, outputOf, run } from './command.ts'

const READY_MS = 120_000

// The tests set these themselves; values from the shell are ignored.
const OUR_SETTINGS = [
  'REDIS_BUILD',
  'REDIS_APPENDFSYNC',
  'STRATEGY',
  'PUBLISH_ADDRESS',
  'WORKERS',
  'LOGIN_LIMIT_PER_ADDRESS',
  'LOAD_RESULTS',
  'COMPOSE_PROFILES',
]

/** `cluster` exists only with the profile `cluster`. */
export type Variant = 'pooled' | 'naive' | 'cluster'

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

export type Settings = Record<string, string>

/** Whether a container has completed its job, such as forming the cluster. */
const hasCompleted = ({ Status, ExitCode, Health }: Container['State']) =>
  Status === 'exited' && ExitCode === 0 && Health === undefined

/** Runs docker-compose.yml as a separate project, on free ports of loopback. */
export class Stack {
  readonly urls: Record<Variant, string>
  readonly ports: readonly number[]
  readonly #compose: readonly string[]
  readonly #project: string
  readonly #env: NodeJS.ProcessEnv
  readonly #folder: string
  readonly #canWait: boolean

  private constructor(options: {
    compose: readonly string[]
    project: string
    ports: readonly number[]
    files: string
    folder: string
    canWait: boolean
  }) {
    const [pooled, naive, cluster] = options.ports
    this.#compose = options.compose
    this.#project = options.project
    this.#folder = options.folder
    this.#canWait = options.canWait
    this.ports = options.ports
    this.urls = {
      pooled: `http://127.0.0.1:${pooled}`,
      naive: `http://127.0.0.1:${naive}`,
      cluster: `http://127.0.0.1:${cluster}`,
    }
    this.#env = {
      ...process.env,
      COMPOSE_PROJECT_NAME: options.project,
      COMPOSE_FILE: options.files,
      API_PORT: String(pooled),
      NAIVE_PORT: String(naive),
      CLUSTER_PORT: String(cluster),
    }
    for (const name of OUR_SETTINGS) delete this.#env[name]
  }

  /** @param overrides Compose files (YAML) that are added to ours. */
  static async create(compose: readonly string[], ...overrides: string[]): Promise<Stack> {
    const folder = await mkdtemp(join(tmpdir(), 'onetrip-compose-'))
    const files = [join(repository, 'docker-compose.yml')]
    for (const [index, override] of overrides.entries()) {
      files.push(join(folder, `override-${index}.yml`))
      await writeFile(join(folder, `override-${index}.yml`), override)
    }
    const ports = await freePorts(3)
    const project = `onetrip-test-${process.pid}-${ports[0]}`
    const version = await outputOf([...compose, 'version', '--short'])
    const canWait = !version.startsWith('1.')
    return new Stack({ compose, project, ports, files: files.join(delimiter), folder, canWait })
  }

  /** Runs Compose. Returns its standard output; throws if it fails. */
  async compose(args: readonly string[], settings: Settings = {}): Promise<string> {
    return await outputOf([...this.#compose, ...args], { env: { ...this.#env, ...settings } })
  }

  /** Runs Compose. Any exit code is accepted. */
  async try(args: readonly string[]): Promise<Finished> {
    return await run([...this.#compose, ...args], { env: this.#env })
  }

  /** Runs a shell command in a container of a service, without a terminal. */
  async exec(service: string, script: string): Promise<Finished> {
    return await this.try(['exec', '-T', service, 'sh', '-c', script])
  }

  /** Runs a command in one container. Returns its standard output. */
  async inContainer(id: string, command: readonly string[]): Promise<string> {
    return await outputOf(['docker', 'exec', id, ...command])
  }

  /** Starts the services and waits until all are healthy. (Compose 1.29 has no `--wait`.) */
  async up(settings: Settings = {}, ...args: readonly string[]): Promise<void> {
    const wait = this.#canWait ? ['--wait'] : []
    await this.compose(['up', '-d', '--no-build', ...wait, ...args], settings)
    if (!this.#canWait) await this.untilHealthy()
  }

  async containers(service?: string): Promise<Container[]> {
    const filters = [`label=com.docker.compose.project=${this.#project}`]
    if (service) filters.push(`label=com.docker.compose.service=${service}`)
    const flags = filters.flatMap((filter) => ['--filter', filter])
    const ids = (await outputOf(['docker', 'ps', '-aq', ...flags])).split('\n').filter(Boolean)
    if (ids.length === 0) return []
    return JSON.parse(await outputOf(['docker', 'inspect', ...ids]))
  }

  async container(service: string): Promise<Container> {
    const [container] = await this.containers(service)
    if (!container) throw new Error(`service ${service} has no container`)
    return container
  }

  /** Waits until every container of these services (default: all) is healthy. */
  async untilHealthy(...services: string[]): Promise<void> {
    await this.until('healthy', async () => {
      const all = await this.containers()
      const wanted = all.filter(
        ({ Config }) =>
          services.length === 0 ||
          services.includes(Config.Labels['com.docker.compose.service'] ?? ''),
      )
      const unwell = wanted.filter(
        ({ State }) => State.Health?.Status !== 'healthy' && !hasCompleted(State),
      )
      return wanted.length > 0 && unwell.length === 0
        ? undefined
        : unwell.map(({ Name, State }) => `${Name} ${State.Health?.Status ?? State.Status}`).join()
    })
  }

  /** The health checks of a service's container that started after `time`, oldest first. */
  async checksSince(
    service: string,
    time: number,
  ): Promise<{ exitCode: number; output: string }[]> {
    const { State } = await this.container(service)
    return (State.Health?.Log ?? [])
      .filter(({ Start }) => Date.parse(Start) > time)
      .map(({ ExitCode, Output }) => ({ exitCode: ExitCode, output: Output }))
  }

  /** Calls `work` repeatedly until it resolves with undefined; otherwise it resolves with the reason. */
  async until(what: string, work: () => Promise<string | undefined>): Promise<void> {
    let reason: string | undefined
    const done = async () => {
      reason = await work()
      return reason === undefined
    }
    if (await until(done, { timeoutMs: READY_MS, everyMs: 250 })) return
    const { output } = await this.try(['logs', '--tail', '40'])
    throw new Error(`not ${what} after ${READY_MS / 1000} s: ${reason}\n${output}`)
  }

  /** Removes everything, including volumes. Returns the ids of what is left. */
  async down(): Promise<string[]> {
    const profiles = ['--profile', 'load', '--profile', 'cluster']
    await this.compose([...profiles, 'down', '--volumes', '--remove-orphans'])
    await rm(this.#folder, { recursive: true, force: true })
    const label = `label=com.docker.compose.project=${this.#project}`
    const lists = [
      ['ps', '-aq'],
      ['volume', 'ls', '-q'],
      ['network', 'ls', '-q'],
    ].map((list) => outputOf(['docker', ...list, '--filter', label]))
    return (await Promise.all(lists)).flatMap((text) => text.split('\n').filter(Boolean))
  }
}
