import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '@onetrip/stack/problem.ts'
import { startProgram } from '@onetrip/stack/program.ts'
import { until } from '@onetrip/stack/until.ts'
import { outputOf, run, succeeds } from './command.ts'

const START_MS = 60_000

/** The tests cannot run on this machine; the message says why and what to do. */
export class CannotRun extends Error {
  override name = 'CannotRun'
}

const engineAnswers = () => succeeds(['docker', 'version', '--format', '{{.Server.Version}}'])

/**
 * Makes sure that a Docker engine answers. If none is running, root with a `dockerd` starts one for these
 * tests, with its usual folders and images.
 *
 * @returns a function that stops the engine, if it was started here.
 * @throws CannotRun if no engine is available.
 */
export async function requireEngine(): Promise<() => Promise<void>> {
  if (await engineAnswers()) return async () => {}
  if (process.getuid?.() !== 0 || !(await succeeds(['dockerd', '--version']))) {
    throw new CannotRun(
      'No Docker engine answers, and none can be started here (root and dockerd are needed). Start Docker, or on Debian, as root: apt-get install -y docker.io docker-compose',
    )
  }
  process.stdout.write('No Docker engine answers: starting dockerd for these tests\n')
  const folder = await mkdtemp(join(tmpdir(), 'onetrip-dockerd-'))
  const cleanUp = async () => {
    await run(['ip', 'link', 'delete', 'docker0']).catch(() => {})
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const engine = await startProgram({
      name: 'dockerd',
      command: 'dockerd',
      args: ['--pidfile', join(folder, 'pid')],
      ready: (signal) => until(engineAnswers, { everyMs: 200, signal }),
      readyTimeoutMs: START_MS,
      killSignal: 'SIGTERM', // SIGKILL would leave containerd behind
    })
    return async () => {
      await engine.stop()
      await cleanUp()
    }
  } catch (error) {
    await cleanUp()
    throw new CannotRun(messageOf(error))
  }
}

/**
 * The command of Compose: `COMPOSE` if it is set, else `docker compose`, else `docker-compose`.
 *
 * @throws CannotRun if neither is installed.
 */
export async function composeCommand(): Promise<string[]> {
  const { COMPOSE: wanted } = process.env
  if (wanted) return wanted.split(' ')
  for (const command of [['docker', 'compose'], ['docker-compose']]) {
    if (await succeeds([...command, 'version'])) return command
  }
  throw new CannotRun(
    'Docker Compose is not installed: neither `docker compose` nor `docker-compose` (1.29 or newer) works.',
  )
}

/** The file with additional certificate authorities that npm uses on this machine, if any. */
export async function authoritiesOfNpm(): Promise<string | undefined> {
  const fromNode = process.env.NODE_EXTRA_CA_CERTS
  const fromNpm = (await outputOf(['npm', 'config', 'get', 'cafile'])).trim()
  return [fromNode, fromNpm].find((path) => path && path !== 'null' && path !== 'undefined')
}
