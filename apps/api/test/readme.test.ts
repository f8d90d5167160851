import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorTable } from '../src/errors.ts'
import { configSchema } from '../src/settings.ts'
import { type ApiDocument, needsToken, operationsOf } from './openapi-document.ts'
import { appOn } from './support.ts'

const path = new URL('../README.md', import.meta.url)

let app: FastifyInstance
let document: ApiDocument

beforeAll(async () => {
  app = await appOn('/nowhere/redis.sock')
  document = (await app.inject('/openapi.json')).json()
})
afterAll(() => app.close())

/** Aligned like the formatter does. */
function table(head: string[], rows: string[][]): string {
  const widths = head.map((cell, column) =>
    Math.max(3, cell.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: string[], fill = ' ') =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(' | ')} |`
  const rule = line(
    head.map(() => ''),
    '-',
  )
  return [line(head), rule, ...rows.map((row) => line(row))].join('\n')
}

function settings(): string {
  const rows = Object.entries(configSchema.properties).map(([name, schema]) => {
    const { description, minimum, maximum } = schema as {
      description?: string
      minimum?: number
      maximum?: number
    }
    const values = 'enum' in schema ? (schema.enum as string[]).join(', ') : ''
    const range = maximum === undefined ? `from ${minimum}` : `${minimum} to ${maximum}`
    const fallback = 'default' in schema ? String(schema.default) : ''
    return [
      `\`${name}\``,
      fallback === '' ? '' : `\`${fallback}\``,
      minimum === undefined ? values : range,
      description ?? '',
    ]
  })
  return table(['setting', 'default', 'values', 'description'], rows)
}

const errors = () =>
  table(
    ['status', 'code', 'may have written', 'safe to retry', 'meaning'],
    Object.entries(errorTable)
      .toSorted(([, a], [, b]) => a.statusCode - b.statusCode)
      .map(([code, { statusCode, mayHaveWritten, retrySafe, meaning }]) => [
        `${statusCode} ${STATUS_CODES[statusCode]}`,
        `\`${code}\``,
        mayHaveWritten ? 'yes' : 'no',
        retrySafe ? 'yes' : 'no',
        meaning,
      ]),
  )

const routes = () =>
  table(
    ['route', 'token', 'description'],
    operationsOf(document).map(({ method, path, operation }) => [
      `\`${method} ${path}\``,
      needsToken(operation) ? 'yes' : '',
      operation.summary ?? '',
    ]),
  )

test('the README lists all routes, errors and settings (vitest -u updates it)', async () => {
  let readme = readFileSync(path, 'utf8')
  for (const [name, content] of Object.entries({ routes, errors, settings })) {
    const section = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`)
    expect(readme).toMatch(section)
    readme = readme.replace(section, (_, before, after) => `${before}\n${content()}\n\n${after}`)
  }
  await expect(readme).toMatchFileSnapshot(path.pathname)
})
