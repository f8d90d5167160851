import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '@onetrip/stack/processes.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runFile } from '../../src/upstream/run-file.ts'

/** Creates a tree with one program: `server`, a copy of `sleep`. */
async function tree(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-run-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await copyFile('/bin/sleep', join(directory, 'server'))
  return directory
}

/** Runs a shell script in a tree. Its `./server` counts as a process of the tree. */
async function runScript(
  directory: string,
  script: string,
  { limitSeconds = 60, signal = new AbortController().signal } = {},
): ReturnType<typeof runFile> {
  await writeFile(join(directory, 'script'), script)
  return await runFile(['/bin/sh', 'script'], {
    tree: directory,
    env: process.env,
    limitSeconds,
    signal,
  })
}

async function pidIn(directory: string, name: string): Promise<number> {
  return await vi.waitFor(async () => {
    const pid = Number(await readFile(join(directory, name), 'utf8'))
    if (!(pid > 0)) throw new Error('not written yet')
    return pid
  }, 10_000)
}

const isGone = (pid: number) => expect.poll(() => isAlive(pid)).toBe(false)

test('returns the output of both streams', async () => {
  const run = await runScript(await tree(), 'echo out; echo err >&2; exit 3')
  expect(run).toMatchObject({ timedOut: false })
  expect(run.output.split('\n').sort()).toEqual(['', 'err', 'out'])
})

test('ends child processes that keep the output open, without waiting for them', async () => {
  const directory = await tree()
  await runScript(directory, 'sleep 300 & echo $! > helper')
  await isGone(await pidIn(directory, 'helper'))
})

test.runIf(process.platform === 'linux')(
  'ends a server of the tree that left the process group, but no server of another tree',
  async () => {
    const directory = await tree()
    const other = await tree()
    const outside = new AbortController()
    const stranger = runScript(other, 'echo $$ > pid; exec ./server 300', {
      signal: outside.signal,
    })
    const strangerPid = await pidIn(other, 'pid')
    await runScript(
      directory,
      "setsid sh -c 'echo $$ > pid; exec ./server 300' > out 2>&1 &\nwhile [ ! -s pid ]; do sleep 0.01; done",
    )
    await isGone(await pidIn(directory, 'pid'))
    expect(isAlive(strangerPid)).toBe(true)
    outside.abort(new Error('enough'))
    await expect(stranger).rejects.toThrow('enough')
    await isGone(strangerPid)
  },
)

test('a time limit ends all processes and keeps the output', async () => {
  const directory = await tree()
  const run = await runScript(directory, 'echo begun; echo $$ > pid; ./server 300', {
    limitSeconds: 1,
  })
  expect(run).toMatchObject({ timedOut: true, output: 'begun\n' })
  await isGone(await pidIn(directory, 'pid'))
})

test('after an interrupt, all processes have ended before the error is thrown', async () => {
  const directory = await tree()
  const interrupt = new AbortController()
  const run = runScript(directory, 'echo $$ > pid; ./server 300 & echo $! > server.pid; wait', {
    signal: interrupt.signal,
  })
  const pids = await Promise.all(['pid', 'server.pid'].map((name) => pidIn(directory, name)))
  interrupt.abort(new Error('Ctrl-C'))
  await expect(run).rejects.toThrow('Ctrl-C')
  for (const pid of pids) await isGone(pid)
})

test('a program that does not exist is an error', async () => {
  await expect(
    runFile(['./none'], {
      tree: await tree(),
      env: process.env,
      limitSeconds: 5,
      signal: new AbortController().signal,
    }),
  ).rejects.toThrow('ENOENT')
})
