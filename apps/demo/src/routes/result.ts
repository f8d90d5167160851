import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { Exactly } from '../events.ts'
import { imageOf } from '../result/image.ts'
import { resultPage } from '../result/page.ts'
import type { DemoService } from '../service-client.ts'
import { POLICY } from './page.ts'

const params = Exactly({ id: Type.String({ maxLength: 40, pattern: '^[\\w-]+$' }) })

/** `/race/<id>`: the page of a result, for links, and its images. */
export const resultRoutes: FastifyPluginAsyncTypebox<{ demo: DemoService }> = async (
  app,
  { demo },
) => {
  const parts = [
    {
      path: '',
      operationId: 'readResult',
      summary: 'Page of the result of a race',
      type: 'text/html; charset=utf-8',
      read: async (id: string, origin: string) => resultPage(await demo.result(id), origin),
    },
    {
      path: '/image.svg',
      operationId: 'drawResult',
      summary: 'Image of the result of a race, as SVG',
      type: 'image/svg+xml',
      read: async (id: string) => imageOf(await demo.result(id)),
    },
    {
      path: '/image.png',
      operationId: 'renderResult',
      summary: 'Image of the result of a race, as PNG',
      type: 'image/png',
      read: (id: string) => demo.image(id),
    },
  ]
  for (const { path, type, read, ...described } of parts) {
    const content = { [type]: { schema: Type.Unsafe<never>(Type.String({ examples: ['…'] })) } }
    const response = { 200: { description: described.summary, content } }
    app.get(
      `/race/:id${path}`,
      { schema: { ...described, tags: ['demo'], params, response } },
      async ({ params, protocol, host }, reply) => {
        reply.headers({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' })
        return reply.type(type).send((await read(params.id, `${protocol}://${host}`)) as never)
      },
    )
  }
}
