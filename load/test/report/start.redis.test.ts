import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '@onetrip/stack/ports.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { runStart } from '@onetrip/stack/testing/programs.ts'
import { expect, test } from 'vitest'

test('npm start shows the latest report at /report, as soon as there is one', async () => {
  const state = await temporaryFolder()
  const [pooled, naive, redis] = await freePorts(3)
  const args = [`--port=${pooled}`, `--naive-port=${naive}`, `--redis-port=${redis}`]
  await runStart({ state, args, until: /^\s*Stop / })
  const url = `http://127.0.0.1:${pooled}/report`
  const absent = await fetch(url)
  expect(absent.status).toBe(404)
  expect(await absent.json()).toMatchObject({ message: expect.stringContaining('npm run load') })
  await mkdir(join(state, 'report'))
  await writeFile(join(state, 'report', 'latest.html'), '<!doctype html>\n')
  expect(await (await fetch(url)).text()).toBe('<!doctype html>\n')
})
