import { stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fastifyStatic } from '@fastify/static'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@onetrip/api'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { htmlPage } from './html-page.ts'

interface ReportOptions {
  /** Path of the index page that `npm run load` writes, next to its folder of pages; empty: no report. */
  file: string
}

const NO_REPORT =
  'no report yet: npm run load creates one, and npm start serves it here (setting REPORT_FILE)'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Folder next to the index with the pages of the experiments. Same as in the URL, so links also work without
 * a server.
 */
const PAGES = 'report'

/** `GET /report`: index of the latest measurements; `GET /report/http.html`: the page of an experiment. */
export const reportRoutes: FastifyPluginAsyncTypebox<ReportOptions> = async (app, { file }) => {
  // Adds reply.sendFile and no routes. The root is required, but each call below names its folder.
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })

  async function send(reply: FastifyReply, path: string) {
    const found = file === '' ? null : await stat(path).catch(() => null)
    if (!found?.isFile()) throw new ApiError('API_NOT_FOUND', NO_REPORT)
    reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
    reply.type('text/html; charset=utf-8') // for any file name
    return reply.sendFile(basename(path), dirname(resolve(path)), { maxAge: 0, contentType: false })
  }

  app.get(
    '/report',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readReport',
        summary: 'Report of the latest measurements',
        description:
          'HTML page written by `npm run load`, with links to the pages of the experiments.',
        tags: ['demo'],
        response: htmlPage,
      },
    },
    (_, reply) => send(reply, file),
  )

  app.get(
    '/report/:page',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readReportPage',
        summary: 'Report of an experiment',
        description: 'Self-contained HTML page written by `npm run load`.',
        tags: ['demo'],
        params: Type.Object({
          page: Type.String({
            pattern: '^[a-z][a-z0-9-]{0,40}\\.html$', // prevents path traversal
            description: 'Page of the experiment',
            examples: ['http.html'],
          }),
        }),
        response: htmlPage,
      },
    },
    ({ params }, reply) => send(reply, join(dirname(file), PAGES, params.page)),
  )
}
