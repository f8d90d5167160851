import { spawn } from 'node:child_process'
import { Problem } from '../problem.ts'
import { type RedisBuild, redisCli } from './redis.ts'

/**
 * Builds a Redis, or redis-cli and redis-benchmark (`tools`), once; quick when it is built. Its
 * progress goes straight to the user.
 *
 * It runs in a process group of its own, and an abort ends the whole group: compilers, too.
 *
 * @returns the folder with the programs.
 * @throws Problem when it fails (it has said why by then). The reason of `signal`.
 */
export async function buildRedis(
  build: RedisBuild | 'tools',
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  const child = spawn(process.execPath, [redisCli, 'build', build], {
    stdio: ['ignore', 'pipe', 'inherit'], // the folder is on standard output; progress on the other
    detached: true,
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.once('error', reject)
  child.once('close', (code) => resolve(code))
  const signalGroup = (name: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch {
      // It has ended already.
    }
  }
  let force: NodeJS.Timeout | undefined
  const onAbort = () => {
    signalGroup('SIGTERM')
    force = setTimeout(() => signalGroup('SIGKILL'), 5_000)
  }
  const onExit = () => signalGroup('SIGTERM')
  signal.addEventListener('abort', onAbort)
  process.once('exit', onExit)
  try {
    const code = await promise
    signal.throwIfAborted()
    if (code !== 0) throw new Problem(`Redis (${build}) could not be built; the reason is above.`)
    return output.trimEnd().slice(`${build}: `.length)
  } finally {
    clearTimeout(force)
    signal.removeEventListener('abort', onAbort)
    process.off('exit', onExit)
  }
}
