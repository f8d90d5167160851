import { stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fastifyStatic } from '@fastify/static'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { htmlPage } from '../schemas.ts'

interface ReportOptions {
  /** Path of the index that `npm run load` makes, beside a folder of pages; none if empty. */
  file: string
}

const NO_REPORT =
  'there is no report yet: npm run load makes one, and npm start shows it here (setting REPORT_FILE)'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Pages of experiments are in this folder beside the index, so that its links also work among files. */
const PAGES = 'report'

/** `GET /report`: the index of the latest measurements; `GET /report/http.html`: one of them. */
export const reportRoutes: FastifyPluginAsyncTypebox<ReportOptions> = async (app, { file }) => {
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })

  async function send(reply: FastifyReply, path: string) {
    const found = file === '' ? null : await stat(path).catch(() => null)
    if (!found?.isFile()) throw new ApiError('API_NOT_FOUND', NO_REPORT)
    reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
    reply.type('text/html; charset=utf-8') // whatever the file is called
    return reply.sendFile(basename(path), dirname(resolve(path)), { maxAge: 0, contentType: false })
  }

  app.get(
    '/report',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readReport',
        summary: 'The latest measurements',
        description: 'A page that `npm run load` made, with a link to one for each experiment.',
        tags: ['operations'],
        response: htmlPage,
        'x-errors': [404],
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
        summary: 'The latest measurement of an experiment',
        description: 'A page that `npm run load` made, complete in itself.',
        tags: ['operations'],
        params: Type.Object({
          page: Type.String({
            // No path, and no other file.
            pattern: '^[a-z][a-z0-9-]{0,40}\\.html$',
            description: 'Of the experiment',
            examples: ['http.html'],
          }),
        }),
        response: htmlPage,
        'x-errors': [404],
      },
    },
    ({ params }, reply) => send(reply, join(dirname(file), PAGES, params.page)),
  )
}
