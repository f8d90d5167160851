import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fastifyStatic } from '@fastify/static'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@onetrip/api'
import { htmlPage } from './html-page.ts'

interface ReportOptions {
  /** Path of the page that `npm run load` writes; empty: no report. */
  file: string
}

const NO_REPORT =
  'no report yet: npm run load (in Compose: docker compose run --rm load) creates one, which appears here (setting REPORT_FILE)'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** For a browser, which would show the error as JSON. */
const noReportPage = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Onetrip: no report</title><p>${NO_REPORT} <a href="/">Back</a></p></html>`

/** `GET /report`: the page of the latest measurement. */
export const reportRoutes: FastifyPluginAsyncTypebox<ReportOptions> = async (app, { file }) => {
  // Adds reply.sendFile and no routes. The root is required, but the call below names its folder.
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })

  app.get(
    '/report',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readReport',
        summary: 'Report of the latest measurement',
        description: 'Self-contained HTML page written by `npm run load`: a chart and tables.',
        tags: ['demo'],
        response: htmlPage,
      },
    },
    async ({ headers }, reply) => {
      const found = file === '' ? null : await stat(file).catch(() => null)
      const isThere = found?.isFile() === true
      if (!isThere && !headers.accept?.includes('text/html')) {
        throw new ApiError('API_NOT_FOUND', NO_REPORT)
      }
      reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
      reply.type('text/html; charset=utf-8') // for any file name
      if (!isThere) {
        reply.statusCode = 404
        return reply.send(noReportPage as never)
      }
      return reply.sendFile(basename(file), dirname(resolve(file)), {
        maxAge: 0,
        contentType: false,
      })
    },
  )
}
