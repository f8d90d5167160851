import { NAME_PATTERN } from '@onetrip/session-store'
import { Ajv } from 'ajv'
import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify'
import type { TSchema } from 'typebox'

const strict = new Ajv({ allErrors: false, useDefaults: true })
// A query or a parameter is text; a body has types of its own, and a wrong one is a mistake.
const fromText = new Ajv({ allErrors: false, useDefaults: true, coerceTypes: true })

/** Fastify's own compiler would drop unknown properties and turn numbers into strings, silently. */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) =>
  (httpPart === 'body' ? strict : fromText).compile(schema)

/** A message that names the field, an unknown one too. */
export function schemaErrorFormatter(
  errors: FastifySchemaValidationError[],
  dataVar: string,
): Error {
  const [error] = errors
  const unknown = error?.params.additionalProperty
  if (typeof unknown === 'string') {
    // What the client sent is quoted, short and printable.
    return new Error(`${dataVar} has an unknown property ${JSON.stringify(unknown.slice(0, 40))}`)
  }
  const isName = error?.params.pattern === NAME_PATTERN // too long to be shown
  const message = isName ? 'must have no control characters' : error?.message
  return new Error(`${dataVar}${error?.instancePath ?? ''} ${message}`)
}
