import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unixUrl } from '@onetrip/stack/address.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { installPacked, packedForThisTest } from '@onetrip/stack/testing/packed.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'

const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url))

test('the packed package runs by npx, without the repository', async () => {
  const { socket } = await redisForThisTest()
  const project = await temporaryFolder()
  const installed = installPacked(packedForThisTest('doctor'), project, 'doctor')
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  const dependencies = Object.keys(manifest.dependencies)
  expect(dependencies).toEqual(['commander', 'ioredis'])
  for (const name of dependencies) {
    symlinkSync(join(modules, name), join(project, 'node_modules', name))
  }
  // As `npm install` does.
  const program = join(installed, manifest.bin['onetrip-doctor'])
  chmodSync(program, 0o755)
  mkdirSync(join(project, 'node_modules/.bin'))
  symlinkSync(program, join(project, 'node_modules/.bin/onetrip-doctor'))

  const args = ['--no-install', 'onetrip-doctor', '--watch=1', `--url=${unixUrl(socket)}`]
  const env = cleanEnv(project, { NO_COLOR: '1' })
  const text = execFileSync('npx', [...args, '--fail-on=none'], {
    cwd: project,
    env,
    encoding: 'utf8',
  })
  expect(text).toMatch(/^(Redis|Valkey) \S+ at unix:/)
  expect(text).toContain('Overview')
})
