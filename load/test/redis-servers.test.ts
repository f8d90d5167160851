import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { RedisServer } from '../src/drivers/redis/server.ts'
import { redisForEach } from '../src/drivers/redis/servers.ts'
import type { Context } from '../src/experiments/experiment.ts'
import { product } from '../src/rounds/shape.ts'

test('only the Redis of the measured case runs, and all of them at the end', async () => {
  const pids = new Map<string, number>()
  const start = async ({ build }: { build: string }) => {
    const child = spawn('sleep', ['60'])
    onTestFinished(() => void child.kill('SIGKILL'))
    pids.set(build, child.pid ?? Number.NaN)
    return { pid: child.pid } as RedisServer
  }
  const undo: (() => unknown)[] = []
  const context = { defer: (work: () => unknown) => undo.push(work) } as unknown as Context
  const stopped = async () => {
    const states = [...pids].map(async ([build, pid]) => {
      const isStopped = /^State:\tT/m.test(await readFile(`/proc/${pid}/status`, 'utf8'))
      return isStopped ? [build] : []
    })
    return (await Promise.all(states)).flat()
  }

  const cases = product({ build: ['stock', 'patched'], threads: [1] })
  const serverOf = await redisForEach(context, cases, start)
  await expect.poll(stopped).toEqual(['stock', 'patched'])
  for (const [build, other] of [
    ['stock', 'patched'],
    ['patched', 'stock'],
  ] as const) {
    expect(serverOf({ command: 'GET', build, threads: 1 }).pid).toBe(pids.get(build))
    await expect.poll(stopped).toEqual([other])
  }
  expect(() => serverOf({ build: 'stock', threads: 2 })).toThrow('no Redis for')
  for (const work of undo) work()
  await expect.poll(stopped).toEqual([])
})
