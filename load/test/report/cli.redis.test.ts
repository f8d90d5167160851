import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { expect, test } from 'vitest'

test('all measures parts into one file, of which report makes a page', async () => {
  const state = await temporaryFolder()
  const folder = await temporaryFolder()
  const [json, html] = [join(folder, 'all.json'), join(folder, 'all.html')]
  // The second begins its process anew in a network of its own, and must not take the first with it.
  const all = ['all', '--quick', '--parts=client,info', '--json', json]
  const load = await run('cli.ts', { state, args: all, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  expect(load.output[0]).toMatch(/^\[1\/2\] client: about 40 s; 85 s to the end$/)
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
  const result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({
    format: 'onetrip-load-all/1',
    parts: [
      { format: 'onetrip-load-redis/1', experiment: 'client', options: { rounds: 5 } },
      { format: 'onetrip-load-redis/1', experiment: 'info' },
    ],
  })
  expect(Object.keys(result.parts[0].options)).not.toContain('report')

  const args = ['report', json, '--html', html]
  const report = await run('cli.ts', { state, args, until: /The report is in/ })
  expect(await report.exited).toEqual({ code: 0, signal: null })
  expect(await readFile(html, 'utf8')).toContain('Redis: a single client')
})

test('report says what is wrong with a file', async () => {
  const state = await temporaryFolder()
  const args = ['report', 'package.json']
  const report = await run('cli.ts', { state, args, until: /package.json is no result of npm run/ })
  expect(await report.exited).toEqual({ code: 1, signal: null })
})
