import { existsSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { isAlive } from '@onetrip/stack/processes.ts'
import type { Program } from '@onetrip/stack/program.ts'
import { expect, onTestFinished } from 'vitest'
import { startApiProcess } from './api-process.ts'

export const WORKERS = 2

export interface Cluster {
  primary: Program
  url: string
  /** Processes that listen or listened, in the order of their start. */
  workers: number[]
}

/** Body of `/healthz`. */
export const OK = '{"status":"ok"}'

/** Starts the API with `WORKERS` workers and waits until all listen. Stops it when the current test ends. */
export async function clusterForThisTest(
  settings: { REDIS_URL: string; [name: string]: string },
  program?: string,
): Promise<Cluster> {
  const workers: number[] = []
  const allListen = Promise.withResolvers<void>()
  let url = ''
  const primary = await startApiProcess(
    { WORKERS: String(WORKERS), ...settings },
    {
      ...(program && { program }),
      ready: () => allListen.promise,
      onLine(line) {
        url ||= /listening at (http:[^"]+)/.exec(line)?.[1] ?? ''
        const pid = /"workerPid":(\d+)/.exec(line)?.[1]
        if (pid !== undefined) workers.push(Number(pid))
        // The worker logs the address, perhaps after the primary has logged that all workers listen.
        if (workers.length >= WORKERS && url !== '') allListen.resolve()
      },
    },
  )
  onTestFinished(async () => {
    for (const pid of workers.filter(isAlive)) process.kill(pid, 'SIGCONT')
    await primary.stop()
    expect(workers.filter(isAlive)).toEqual([])
  })
  return { primary, url, workers }
}

/** A keep-alive connection: the same process answers all its requests. */
export function connection(url: string): (path: string) => Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return async (path) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    request(`${url}${path}`, { agent }, (answer) => text(answer).then(resolve, reject))
      .on('error', reject)
      .end()
    return await promise
  }
}

export const hasProc = existsSync('/proc/self/stat')

/** Stops a process (SIGSTOP). Without /proc it may still run for a moment. */
export async function pause(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  if (!hasProc) return
  const state = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]
  await expect.poll(state).toBe('T')
}

/**
 * Opens a connection to each running worker, in the order of `workers`. Any worker may accept a connection,
 * so the other workers are stopped meanwhile.
 */
export async function connections({ url, workers }: Cluster) {
  const running = workers.filter(isAlive)
  expect(running).toHaveLength(WORKERS)
  const all: ReturnType<typeof connection>[] = []
  for (const pid of running) {
    const others = running.filter((other) => other !== pid)
    await Promise.all(others.map(pause))
    const get = connection(url)
    expect(await get('/healthz')).toBe(OK)
    all.push(get)
    for (const other of others) process.kill(other, 'SIGCONT')
  }
  return all
}

/** Sum of a metric over its labels, or over one route. */
export async function metric(get: (path: string) => Promise<string>, name: string, route?: string) {
  const found = parseMetrics(await get('/metrics')).filter(
    (line) => line.name === name && (route === undefined || line.labels.route === route),
  )
  return found.reduce((sum, { value }) => sum + value, 0)
}
