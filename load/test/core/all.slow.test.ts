import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { expectNothingLeft, runLoad } from '../support/run.ts'

test('all writes a file for each experiment and one page', async () => {
  const state = await temporaryFolder()
  const folder = await temporaryFolder()
  const html = join(await temporaryFolder(), 'all.html')
  // The second experiment restarts its process in its own network namespace.
  const args = ['all', '--quick', '--only=commands,info', '--json', folder, '--html', html]
  const all = await runLoad({ state, args, until: /The results are in/ })
  expect(await all.exited).toEqual({ code: 0, signal: null })
  expect(all.output[0]).toMatch(/^\[1\/2\] info: about \d+ s; \d+ s to the end$/)
  expect((await readdir(folder)).toSorted()).toEqual(['commands.json', 'info.json'])
  const page = await readFile(html, 'utf8')
  expect(page.match(/<h2>.*?<\/h2>/g)?.slice(0, 2)).toEqual([
    '<h2>Redis: INFO beside many idle connections</h2>',
    '<h2>Redis: command by command</h2>',
  ])
  await expectNothingLeft(state)
})

test('an interrupt stops the running experiment and keeps the complete rounds', async () => {
  const state = await temporaryFolder()
  const folder = await temporaryFolder()
  const args = ['all', '--only=commands,info', '--json', folder]
  const all = await runLoad({ state, args, until: /^Round 2\// })
  all.signal('SIGINT')
  expect(await all.exited).toEqual({ code: 130, signal: null })
  expect(await readdir(folder)).toEqual(['info.json'])
  const result = JSON.parse(await readFile(join(folder, 'info.json'), 'utf8'))
  expect(result).toMatchObject({ interrupted: true })
  expect(await processesOf(state)).toEqual([])
})

test.each([
  [['--only=htpp'], {}, /"htpp" is not one of http, /],
  [['--only=info'], { REDIS_SERVER: '/nowhere' }, /No experiment has a result/],
  [['--json', '/dev/null/results'], {}, /results cannot be written/],
])('all %j fails with a message', async (args, env, message) => {
  const state = await temporaryFolder()
  const all = await runLoad({ state, args: ['all', ...args], env, until: message })
  expect(await all.exited).toEqual({ code: 1, signal: null })
})
