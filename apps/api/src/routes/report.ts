import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { fastifyStatic } from '@fastify/static'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'

interface ReportOptions {
  /** Path of the page that `npm run load` makes; none if empty. */
  file: string
}

const NO_REPORT =
  'there is no report yet: npm run load makes one, and npm start shows it here (setting REPORT_FILE)'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** `GET /report`: the page of the latest measurement. */
export const reportRoutes: FastifyPluginAsyncTypebox<ReportOptions> = async (app, { file }) => {
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })

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
                schema: Type.Unsafe<never>(
                  Type.String({ examples: ['<!doctype html>\n<html lang="en">…'] }),
                ),
              },
            },
          },
          304: Type.Unsafe<never>(
            Type.Null({
              description: 'It is still the page of If-None-Match or If-Modified-Since',
            }),
          ),
        },
        'x-errors': [404],
      },
    },
    async (_, reply) => {
      const found = file === '' ? null : await stat(file).catch(() => null)
      if (!found?.isFile()) throw new ApiError('API_NOT_FOUND', NO_REPORT)
      reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
      reply.type('text/html; charset=utf-8') // whatever the file is called
      return reply.sendFile(basename(file), dirname(resolve(file)), {
        maxAge: 0,
        contentType: false,
      })
    },
  )
}
