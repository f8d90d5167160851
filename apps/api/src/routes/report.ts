import { createHash } from 'node:crypto'
import type { ReadStream } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'

interface ReportOptions {
  /** Path of the page that `npm run load` makes; none if empty. */
  file: string
}

const NO_REPORT =
  'there is no report yet: npm run load makes one, and npm start shows it here (setting REPORT_FILE)'

/** Reports have some megabytes; whatever is larger is none. */
const MOST_BYTES = 64 * 2 ** 20

/** Style and script are in the head, before anything that was measured. */
const HEAD_BYTES = 128 * 2 ** 10

const routes: FastifyPluginAsyncTypebox<ReportOptions> = async (app, { file }) => {
  const policyOf = policies()

  app.get(
    '/report',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readReport',
        summary: 'The report of the latest measurement',
        description: 'A page that `npm run load` made, complete in itself.',
        tags: ['operations'],
        response: {
          200: {
            description: 'The page',
            headers: { etag: Type.String() },
            content: {
              'text/html; charset=utf-8': {
                schema: Type.Unsafe<ReadStream>(
                  Type.String({ examples: ['<!doctype html>\n<html lang="en">…'] }),
                ),
              },
            },
          },
          304: Type.Unsafe<undefined>(
            Type.Null({
              description: 'It is still the page of If-None-Match or If-Modified-Since',
            }),
          ),
        },
        'x-errors': [404],
      },
    },
    async (request, reply) => {
      const page = await openReport(file)
      try {
        const { handle, size, etag, changed } = page
        reply.headers({
          etag,
          'last-modified': changed.toUTCString(),
          'cache-control': 'no-cache',
          'content-security-policy': await policyOf(page),
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
        })
        if (isFresh(request, page)) {
          await handle.close()
          return reply.code(304).send()
        }
        reply.type('text/html; charset=utf-8').header('content-length', size)
        // Not more than was promised, should the file grow; the stream closes it.
        const end = Math.max(0, size - 1)
        return reply.send(handle.createReadStream({ start: 0, end }))
      } catch (error) {
        await page.handle.close()
        throw error
      }
    },
  )
}

interface OpenReport {
  handle: FileHandle
  size: number
  etag: string
  /** To the second, as HTTP has it. */
  changed: Date
}

/** @throws ApiError when there is none. */
async function openReport(file: string): Promise<OpenReport> {
  const absent = () => new ApiError('API_NOT_FOUND', NO_REPORT)
  // Asked before it is opened: opening a pipe would wait for its writer.
  const found = file === '' ? null : await stat(file).catch(() => null)
  if (!found?.isFile()) throw absent()
  const handle = await open(file).catch(() => Promise.reject(absent()))
  try {
    const { size, mtimeMs, ino } = await handle.stat()
    if (size === 0 || size > MOST_BYTES) throw absent()
    const etag = `"${[ino, size, Math.trunc(mtimeMs)].map((part) => part.toString(36)).join('-')}"`
    return { handle, size, etag, changed: new Date(Math.trunc(mtimeMs / 1_000) * 1_000) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

function isFresh({ headers }: FastifyRequest, { etag, changed }: OpenReport): boolean {
  const tags = headers['if-none-match']
  if (tags !== undefined) {
    const known = tags.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
    return known.includes(etag) || known.includes('*')
  }
  const since = Date.parse(headers['if-modified-since'] ?? '')
  return since >= changed.getTime()
}

/** The Content-Security-Policy of a page, which is worked out once for each page. */
function policies(): (page: OpenReport) => Promise<string> {
  let last = { etag: '', policy: '' }
  return async ({ handle, etag, size }) => {
    if (last.etag === etag) return last.policy
    const buffer = Buffer.alloc(Math.min(size, HEAD_BYTES))
    await handle.read(buffer, 0, buffer.length, 0)
    last = { etag, policy: policyFor(buffer.toString('utf8')) }
    return last.policy
  }
}

/** Lets in the page's one style and one script, and nothing that was put in later. */
function policyFor(page: string): string {
  const head = page.slice(0, Math.max(0, page.indexOf('</head>')))
  const source = (tag: string) => {
    const [, text] = new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(head) ?? []
    if (text === undefined) return "'none'"
    return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  }
  return [
    "default-src 'none'",
    `style-src ${source('style')}`,
    `script-src ${source('script')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** `/report`: what `npm run load` measured last. */
export const reportRoutes = fp(routes, {
  name: 'report-routes',
  dependencies: ['errors'],
  encapsulate: true,
})
