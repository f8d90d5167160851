import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withFigures } from '../../src/reporting/document.ts'

const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))

test.each(['redis-experiments.md', 'ports.md'])(
  'docs/%s has the figures of load/results, and says how they are renewed',
  async (name) => {
    // Those of old files are compared elsewhere.
    const text = (await readFile(docs + name, 'utf8')).replaceAll('<!-- redis-', '<!--- redis-')
    expect(text).toBe(await withFigures(text))
    const marked = [...text.matchAll(/^<!-- (\S+\.json), /gm)].map(([, file]) => file)
    const renewed = [...text.matchAll(/^npm run load -- .* --json load\/results\/(\S+)/gm)]
    expect(renewed.map(([, file]) => file).toSorted()).toEqual([...new Set(marked)].toSorted())
  },
)
