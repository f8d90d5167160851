import { NAME_PATTERN } from '@onetrip/session-store'
import { Ajv } from 'ajv'
import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify'
import type { TSchema } from 'typebox'

const strict = new Ajv({ allErrors: false, useDefaults: true })
// Queries, parameters and headers are text. JSON bodies have types, so a wrong type there is an error.
const coercing = new Ajv({ allErrors: false, useDefaults: true, coerceTypes: true })

/** Replaces Fastify's compiler, which silently drops unknown properties and converts numbers to strings. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) =>
  (httpPart === 'body' ? strict : coercing).compile(schema)

/** Names the invalid field, or the unknown property. */
export function schemaErrorFormatter(
  errors: FastifySchemaValidationError[],
  dataVar: string,
): Error {
  const [error] = errors
  const unknown = error?.params.additionalProperty
  if (typeof unknown === 'string') {
    // Truncated and escaped: it comes from the client.
    return new Error(`${dataVar} has an unknown property ${JSON.stringify(unknown.slice(0, 40))}`)
  }
  const isName = error?.params.pattern === NAME_PATTERN // the pattern is too long for a message
  const message = isName ? 'must have no control characters' : error?.message
  return new Error(`${dataVar}${error?.instancePath ?? ''} ${message}`)
}
