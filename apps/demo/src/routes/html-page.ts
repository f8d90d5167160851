import { Type } from 'typebox'

/** Responses of a route that serves an HTML file. */
export const htmlPage = {
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
    Type.Null({ description: 'Not modified since If-None-Match or If-Modified-Since' }),
  ),
}
