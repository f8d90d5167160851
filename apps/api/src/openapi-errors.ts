import { STATUS_CODES } from 'node:http'
import type { OpenAPIV3_1 } from 'openapi-types'
import { type ErrorKind, errorTable } from './errors.ts'

type Operation = OpenAPIV3_1.OperationObject & { 'x-errors'?: readonly number[] }

const nameOf = (status: number) => (STATUS_CODES[status] ?? '').replaceAll(/[^A-Za-z]/g, '')

const flags = {
  mayHaveWritten: {
    type: 'boolean',
    description: 'Whether Redis may have executed a write of this request',
  },
  retrySafe: {
    type: 'boolean',
    description: 'Whether the request can safely be retried: nothing is counted twice',
  },
} as const

const requestId: OpenAPIV3_1.HeaderObject = {
  description: 'Request id, as in the log',
  schema: { type: 'string' },
}

const headersOf: Record<number, Record<string, OpenAPIV3_1.HeaderObject>> = {
  401: { 'www-authenticate': { schema: { type: 'string' } } },
  405: { allow: { description: 'Allowed methods', schema: { type: 'string' } } },
  429: retryAfter(),
  503: retryAfter(),
}

function retryAfter() {
  return { 'retry-after': { description: 'Seconds to wait', schema: { type: 'integer' as const } } }
}

function responseOf(status: number, kinds: readonly ErrorKind[]): OpenAPIV3_1.ResponseObject {
  const examples = kinds.map(({ code, meaning, mayHaveWritten, retrySafe }) => [
    code,
    {
      value: {
        statusCode: status,
        code,
        error: STATUS_CODES[status],
        message: meaning,
        ...(status >= 500 && { mayHaveWritten, retrySafe }),
      },
    },
  ])
  const schema: OpenAPIV3_1.SchemaObject = {
    type: 'object',
    required: [
      'statusCode',
      'code',
      'error',
      'message',
      ...(status >= 500 ? Object.keys(flags) : []),
    ],
    additionalProperties: false,
    properties: {
      statusCode: { const: status },
      code: { enum: kinds.map(({ code }) => code) },
      error: { const: STATUS_CODES[status] },
      message: { type: 'string' },
      ...(status >= 500 && flags),
    },
  }
  return {
    description: kinds.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join('\n\n'),
    headers: { ...headersOf[status], 'x-request-id': requestId },
    content: { 'application/json': { schema, examples: Object.fromEntries(examples) } },
  }
}

/** Error responses for the document's components, one per status, with the application's own errors. */
export function errorResponses(
  ofApplication: readonly ErrorKind[],
): Pick<OpenAPIV3_1.ComponentsObject, 'responses'> {
  const ofApi = Object.entries(errorTable).map(([code, properties]) => ({ code, ...properties }))
  const byStatus = Map.groupBy([...ofApi, ...ofApplication], ({ statusCode }) => statusCode)
  return {
    responses: Object.fromEntries(
      [...byStatus].map(([status, kinds]) => [nameOf(status), responseOf(status, kinds)]),
    ),
  }
}

/** Derives a route's error statuses from its input and method, so that routes need not list them. */
function errorsOf(method: string, operation: Operation): Set<number> {
  const { security = [], parameters = [], 'x-errors': own = [] } = operation
  // 400: for example an invalid Host header. 429: too many pipelined requests on one connection.
  const errors = new Set([400, 429, 500, 503, ...own])
  const add = (...more: number[]) => {
    for (const status of more) errors.add(status)
  }
  if (parameters.some((parameter) => 'in' in parameter && parameter.in === 'path')) add(414)
  if (method !== 'get') add(413, 415)
  const isOptional = security.some((one) => Object.keys(one).length === 0)
  if (security.length > 0 && !isOptional) add(401, ...(method === 'get' ? [] : [403]))
  return errors
}

/** Adds the error responses to every operation of the document. */
export function withErrors(document: OpenAPIV3_1.Document): OpenAPIV3_1.Document {
  for (const path of Object.values(document.paths ?? {})) {
    for (const [method, operation] of Object.entries(path ?? {}) as [string, Operation][]) {
      operation.responses ??= {}
      for (const status of errorsOf(method, operation)) {
        operation.responses[status] ??= { $ref: `#/components/responses/${nameOf(status)}` }
      }
      delete operation['x-errors']
    }
  }
  return document
}
