import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { until } from '@onetrip/stack/until.ts'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { findBuild } from '../src/find.ts'
import { homeOf } from '../src/home.ts'
import { programPath } from '../src/installed.ts'

/** A port that is currently free. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/** The path of the patched redis-server. */
export async function patchedServer(): Promise<string> {
  const found = await findBuild(homeOf(process.env), 'patched', {}, process.env)
  if (!found) throw new Error('the build patched is missing')
  return programPath(found, 'redis-server')
}

/** Sends a command over a Unix socket. Returns the reply or error; the elements of a list on a line each. */
export async function redisCli(socket: string, ...command: string[]): Promise<string> {
  const redis = new Redis(socket, { enableReadyCheck: false, disableClientInfo: true })
  try {
    const [name = '', ...args] = command
    const reply = await redis.call(name, ...args).catch((error: Error) => error.message)
    return Array.isArray(reply) ? reply.join('\n') : String(reply)
  } finally {
    redis.disconnect()
  }
}

/** Opens a TCP connection and waits for a reply, so the server has accepted it. Closed after the test. */
export async function connected(port: number, host = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host })
  onTestFinished(() => void socket.destroy())
  socket.write('PING\r\n')
  await once(socket, 'data')
  return socket
}

/** The kernel's data on a TCP socket of this machine. */
interface TcpSocket {
  localPort: number
  remotePort: number
  /** Seconds until the next keep-alive probe; undefined without keep-alive. */
  keepAlive: number | undefined
}

const CLOCK_TICKS_PER_SECOND = 100
const ESTABLISHED = '01'
const KEEP_ALIVE_TIMER = '02'
const RETRANSMISSION_TIMER = '01'

/**
 * Reads the established socket between two ports from `/proc/net/tcp` (see proc_net_tcp in the kernel's
 * documentation). Waits while data is in flight, because the kernel shows another timer then.
 */
export async function tcpSocket(localPort: number, remotePort: number): Promise<TcpSocket> {
  let found: TcpSocket | undefined
  const isQuiet = async () => {
    found = await quietSocket(localPort, remotePort)
    return found !== undefined
  }
  await until(isQuiet, { timeoutMs: 10_000, everyMs: 20 })
  if (found) return found
  throw new Error(`no idle connection from port ${localPort} to ${remotePort}`)
}

async function quietSocket(localPort: number, remotePort: number): Promise<TcpSocket | undefined> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  for (const line of tables.join('\n').split('\n')) {
    const [, local, remote, state, , timer] = line.trim().split(/\s+/)
    if (portIn(local) !== localPort || portIn(remote) !== remotePort) continue
    const [kind, ticks = ''] = timer?.split(':') ?? []
    if (state !== ESTABLISHED || kind === RETRANSMISSION_TIMER) continue
    const seconds = Math.round(Number.parseInt(ticks, 16) / CLOCK_TICKS_PER_SECOND)
    return { localPort, remotePort, keepAlive: kind === KEEP_ALIVE_TIMER ? seconds : undefined }
  }
  return undefined
}

function portIn(address: string | undefined): number {
  return Number.parseInt(address?.split(':')[1] ?? '', 16)
}

/** The output of strace with these arguments while `work` runs. */
async function outputOfStrace(args: string[], work: () => Promise<unknown>): Promise<string> {
  const output = join(await temporaryFolder(), 'calls')
  await underStrace([...args, '-o', output], work)
  return await readFile(output, 'utf8')
}

/** The system calls `names` (separated by commas) of all threads of a process while `work` runs. */
export async function callsDuring(
  pid: number,
  names: string,
  work: () => Promise<unknown>,
): Promise<string[]> {
  const output = await outputOfStrace(['-f', '-e', `trace=${names}`, '-p', String(pid)], work)
  return output.split('\n').filter((line) => line.includes('('))
}

/** The number of system calls of a thread while `work` runs, by name. */
export async function callCounts(
  thread: number,
  work: () => Promise<unknown>,
): Promise<Map<string, number>> {
  const output = await outputOfStrace(['-c', '-p', String(thread)], work)
  // Columns: share, seconds, µs per call, calls, errors (optional), name. The last line is the total.
  const rows = output.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(?!total$)(\w+)$/gm)
  return new Map(Array.from(rows, ([, count, name = '']) => [name, Number(count)]))
}

/** The sockets in calls of `callsDuring` that were removed from an epoll and then closed. */
export function closedAfterRemoval(calls: readonly string[]): string[] {
  const removed = new Set<string>()
  const closed: string[] = []
  for (const call of calls) {
    const [, change, changed = ''] = /epoll_ctl\(\d+, EPOLL_CTL_(ADD|DEL), (\d+)/.exec(call) ?? []
    const [, fd = ''] = / close\((\d+)/.exec(call) ?? []
    if (change === 'DEL') removed.add(changed)
    if (removed.delete(fd)) closed.push(fd)
  }
  return closed
}

/** The calls of setsockopt of a process while `work` runs. */
export async function setsockoptCalls(
  pid: number,
  work: () => Promise<unknown>,
): Promise<string[]> {
  return (await callsDuring(pid, 'setsockopt', work)).filter((call) => call.includes('setsockopt('))
}

/** Runs `work` while strace is attached to a process. `args` are the arguments of strace. */
export async function underStrace(args: string[], work: () => Promise<unknown>): Promise<void> {
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(strace, 'close')
  await once(strace.stderr, 'data') // "Process … attached"
  strace.stderr.resume()
  try {
    await work()
  } finally {
    strace.kill('SIGINT')
    await ended
  }
}

/** The number of open sockets of a process. Files do not count: the cron opens some for a moment. */
export async function openSockets(pid: number): Promise<number> {
  const folder = `/proc/${pid}/fd`
  const targets = await Promise.all(
    (await readdir(folder)).map((fd) => readlink(join(folder, fd)).catch(() => '')),
  )
  return targets.filter((target) => target.startsWith('socket:')).length
}
