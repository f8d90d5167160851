import { rm } from 'node:fs/promises'
import { unixUrl } from '@onetrip/stack/address.ts'
import { socketIn, temporaryRunFolder } from '@onetrip/stack/places.ts'
import { freePorts } from '@onetrip/stack/ports.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { endOf } from '@onetrip/stack/program.ts'
import { buildRedis, type RedisBuild, startRedis } from '@onetrip/stack/redis.ts'
import { redisFacts } from '@onetrip/stack/redis-info.ts'
import { readCpu } from '../drivers/redis/threads.ts'
import type { Server, ServerOptions } from './experiment.ts'

// What is measured is the work for connections and commands, not the disk.
const MEASURED = { appendonly: 'no', save: '', 'io-threads': '1' }

/** To look whether a build is there takes half a second, and an experiment may start ten of it. */
const made = new Set<RedisBuild | 'tools'>()

/**
 * Makes a build of Redis if it is missing.
 *
 * @throws Problem when it cannot be made, or when another Redis would be started in its place.
 */
export async function requireBuild(
  build: RedisBuild | 'tools',
  signal: AbortSignal,
): Promise<void> {
  if (process.env.REDIS_SERVER) {
    throw new Problem('REDIS_SERVER is set, but this measures builds of ours: unset it.')
  }
  if (made.has(build)) return
  await buildRedis(build, signal)
  made.add(build)
}

/**
 * Makes a build of Redis if it is missing and starts it, in a folder that goes away with it.
 *
 * @param onLost is called with the reason when it ends although nobody stopped it.
 * @throws Problem, ProgramError; the reason of `signal`. Nothing is left behind then.
 */
export async function startServer(
  options: ServerOptions,
  signal: AbortSignal,
  onLost: (reason: Error) => void,
): Promise<Server> {
  const { build, tcp = true } = options
  await requireBuild(build, signal)
  const config: Record<string, string> = { ...MEASURED, ...options.config }
  const [port = 0] = tcp ? await freePorts(1) : []
  const folder = await temporaryRunFolder('redis-')
  const socket = await socketIn(folder)
  let stopping: Promise<void> | undefined
  const removeFiles = async () => {
    await socket.remove()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const program = await startRedis({
      build,
      port,
      socket: socket.path,
      directory: folder,
      config,
      signal,
    })
    void program.exited.then(async () => {
      if (!stopping) onLost(await endOf(program))
    })
    const stop = () => {
      stopping ??= program.stop().then(removeFiles)
      return stopping
    }
    const url = unixUrl(socket.path)
    try {
      const facts = await redisFacts(url)
      const { pid } = program
      return {
        build,
        pid,
        socket: socket.path,
        port,
        url,
        facts,
        config,
        stop,
        cpu: () => readCpu(pid),
      }
    } catch (error) {
      await stop()
      throw error
    }
  } catch (error) {
    await removeFiles()
    throw error
  }
}
