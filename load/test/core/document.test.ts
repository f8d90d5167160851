import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { filesIn, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { withFigures } from '../../src/reporting/document.ts'
import { runLoad } from '../support/run.ts'

const table = '| beside \\| asked | x |\n| --- | ----: |\n| x | y |'

describe('marks', () => {
  test('have below them what the results say, and all else stays', async () => {
    const text = `Before.\n\n<!-- info.json, table 1 -->\n\n${table}\n\nBetween.\n
<!-- info.json, provenance -->\n<!-- info.json, claims -->\n\n- Old.\n\n- Stays.\n
<!-- info.json, table 1 -->\n\nAfter, | with a bar.\n\n${table}\n`
    const filled = await withFigures(text)
    const content = String.raw`\| +beside \| one client sends \|(?:.*\n)+?`
    expect(filled).toMatch(
      new RegExp(
        [
          '^Before\\.\n\n<!-- info.json, table 1 -->\n\n',
          `${content}\nBetween\\.\n\n<!-- info.json, provenance -->\n\n- \\d{4}-.* went elsewhere\\.\n\n`,
          '<!-- info.json, claims -->\n\n(?:- .*patched.*\n)+\n- Stays\\.\n\n',
          `<!-- info.json, table 1 -->\n\n${content}\nAfter, \\| with a bar\\.\n\n\\| beside \\\\`,
        ].join(''),
      ),
    )
    expect(filled).not.toContain('Old.')
    expect(await withFigures(filled)).toBe(filled)
  })

  test.each([
    ['No mark.', 'It has no line such as <!-- http.json, table 1 -->.'],
    ['<!-- none.json, claims -->', 'none.json cannot be read'],
    ['<!-- info.json, table 9 -->', /^info\.json has \d tables, and no table 9\.$/],
  ])('%s is a problem', async (text, message) => {
    await expect(withFigures(text)).rejects.toThrow(message)
  })
})

test('document changes a file only if all of its marks can be filled', async () => {
  const state = await temporaryFolder()
  const folder = await temporaryFolder()
  const [good, bad] = [join(folder, 'good.md'), join(folder, 'bad.md')]
  await writeFile(good, '<!-- info.json, claims -->\n')
  await writeFile(bad, '<!-- info.json, claims -->\n<!-- info.json, table 9 -->\n')
  const args = ['document', good, bad]
  const load = await runLoad({ state, args, until: /no table 9/ })
  expect((await load.exited).code).toBe(1)
  expect(await readFile(good, 'utf8')).toContain('CLIENT LIST (patched): an answer costs')
  expect(await readFile(bad, 'utf8')).not.toContain('patched')
  expect(await filesIn(state)).toEqual([])
})

describe('published results', async () => {
  const docs = join(repository, 'docs')
  const names = (await readdir(docs)).filter((name) => name.endsWith('.md'))
  const texts = await Promise.all(
    names.map(async (name) => [name, await readFile(join(docs, name), 'utf8')] as const),
  )
  const marked = texts.filter(([, text]) => /^<!-- [\w-]+\.json, /m.test(text))

  test('are more than none', () => expect(marked.length).toBeGreaterThan(0))

  test.each(marked)('docs/%s has the figures of its files', async (_, text) => {
    expect(text).toBe(await withFigures(text))
  })

  test('are renewed by commands that the documents have', () => {
    for (const [name, text] of marked) {
      const renewed = [...text.matchAll(/^npm run load -- .* --json load\/results\/(\S+)/gm)]
      if (renewed.length === 0) continue
      const shown = new Set([...text.matchAll(/^<!-- (\S+\.json), /gm)].map(([, file]) => file))
      expect(renewed.map(([, file]) => file).toSorted(), name).toEqual([...shown].toSorted())
    }
  })
})
