import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { ResultRecord } from '../../src/upstream/record.ts'
import { requireTcl } from '../../src/upstream/workspace.ts'

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
const hasTcl = await requireTcl(process.env).then(
  () => true,
  () => false,
)

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-suite-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Runs the command to its end, or sends SIGINT when its output contains `stopAt`. */
async function testUpstream(directory: string, args: readonly string[], stopAt?: string) {
  const child = spawn(
    process.execPath,
    [cli, 'test', '--builds', 'patched,patched', '--io-threads', '1', '--clients', '1', ...args],
    { env: { ...process.env, TMPDIR: directory }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (stopAt !== undefined && output.includes(stopAt)) child.kill('SIGINT')
    })
  }
  const ended = Promise.withResolvers<{ code: number | null; signal: string | null }>()
  child.once('close', (code, signal) => ended.resolve({ code, signal }))
  return { ...(await ended.promise), output }
}

/** The running programs whose files are in a directory. */
async function programsUnder(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const programs = await Promise.all(
    pids.map((pid) => readlink(`/proc/${pid}/exe`).catch(() => '')),
  )
  return programs.filter((program) => program.startsWith(directory))
}

test.skipIf(!hasTcl)(
  "runs upstream's files; leaves nothing behind after Ctrl-C, and --resume continues",
  async () => {
    const directory = await temporaryDirectory()
    const json = join(directory, 'result.json')
    const record = async (): Promise<ResultRecord> => JSON.parse(await readFile(json, 'utf8'))

    const files = ['--files', 'unit/quit,unit/scripting', '--json', json]
    const stopped = await testUpstream(directory, files, 'unit/quit, I/O threads 1: 3 tests')
    expect(stopped, stopped.output).toMatchObject({ code: null, signal: 'SIGINT' })
    expect(stopped.output).toContain('continue with --resume')
    expect(await programsUnder(directory)).toEqual([])
    expect(await readdir(directory)).toEqual(['result.json'])
    const partial = await record()
    expect(partial.complete).toBe(false)
    expect(partial.runs.map(({ file, role, end }) => [file, role, end])).toEqual([
      ['unit/quit', 'reference', 'finished'],
      ['unit/quit', 'candidate', 'finished'],
    ])

    const mistaken = await testUpstream(directory, ['--files', 'unit/none', '--json', json])
    expect(mistaken, mistaken.output).toMatchObject({ code: 2, signal: null })
    expect(await record(), 'a wrong option does not change the result').toEqual(partial)

    const resumed = await testUpstream(directory, [
      '--files',
      'unit/quit',
      '--json',
      json,
      '--resume',
    ])
    expect(resumed, resumed.output).toMatchObject({ code: 0, signal: null })
    expect(resumed.output).toContain('No test differs.')
    const { complete, comparisons, runs, builds } = await record()
    expect(complete).toBe(true)
    expect(runs).toEqual(partial.runs)
    expect(comparisons).toEqual([
      {
        file: 'unit/quit',
        ioThreads: 1,
        tests: 3,
        same: { passed: 3, failed: 0, 'left-out': 0 },
        failedInBoth: [],
        differences: [],
      },
    ])
    expect(builds.candidate.patches.length).toBeGreaterThan(0)
  },
)

test('names missing tools and how to install them', async () => {
  await expect(requireTcl({ PATH: await temporaryDirectory() })).rejects.toThrow(
    'apt-get install -y tcl',
  )
  const PATH = await temporaryDirectory()
  const answering = (script: string) =>
    writeFile(join(PATH, 'tclsh8.6'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  await answering('cat > /dev/null; echo "can\'t find package tls" >&2')
  await expect(requireTcl({ PATH })).resolves.toBeUndefined()
  await expect(requireTcl({ PATH: `${PATH}:/bin` }, { tls: true })).rejects.toThrow('tcl-tls')
  await answering('cat > /dev/null')
  await expect(requireTcl({ PATH: `${PATH}:/bin` }, { tls: true })).resolves.toBeUndefined()
})
