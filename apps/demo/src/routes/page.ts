import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fastifyCompress } from '@fastify/compress'
import { fastifyStatic } from '@fastify/static'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { htmlPage } from './html-page.ts'

/** Folder of the demo page. */
export const pageFolder = fileURLToPath(new URL('../../page', import.meta.url))

// No inline scripts or styles. The page sets styles through the CSSOM, which this policy allows.
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const options = {
  index: false as const,
  redirect: false,
  maxAge: 0, // browsers revalidate with If-None-Match and get 304
  acceptRanges: false, // a byte range would refer to the uncompressed file
  logLevel: 'warn' as const,
  setHeaders(reply: FastifyReply) {
    reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
  },
}

/** `GET /`: the demo page; `/page/*`: its files. Only these routes are compressed. */
export const pageRoutes: FastifyPluginAsyncTypebox = async (app) => {
  await app.register(fastifyCompress, { encodings: ['br', 'gzip'], globalDecompression: false })
  await app.register(fastifyStatic, { ...options, root: pageFolder, prefix: '/page/' })
  await app.register(fastifyStatic, {
    ...options,
    root: dirname(fileURLToPath(import.meta.resolve('uplot'))),
    prefix: '/page/uplot/',
    decorateReply: false,
  })

  app.get(
    '/',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'readPage',
        summary: 'Demo page',
        description: 'Does not need Redis. Its files are below `/page/`.',
        tags: ['demo'],
        response: htmlPage,
      },
    },
    (_request, reply) => reply.sendFile('index.html'),
  )
}
