import * as fc from 'fast-check'
import type { OpenAPIV3_1 } from 'openapi-types'

type Schema = OpenAPIV3_1.SchemaObject

/** Values that this schema allows. Supports only the keywords that our schemas use; throws for others. */
export function arbitraryOf(schema: Schema): fc.Arbitrary<unknown> {
  const { minimum = -1000, maximum = 1000 } = schema
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => arbitraryOf(one as Schema)))
  switch (schema.type) {
    case 'object':
      return objectOf(schema)
    case 'string':
      return stringOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: minimum, max: maximum })
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true })
    case 'array': {
      const { minItems: minLength = 0, maxItems: maxLength = 10 } = schema
      return fc.array(arbitraryOf(schema.items as Schema), { minLength, maxLength })
    }
    default:
      throw new TypeError(`unsupported schema ${JSON.stringify(schema)}`)
  }
}

function objectOf(schema: Schema): fc.Arbitrary<object> {
  const { properties = {}, required = [], additionalProperties = false } = schema
  const values = Object.entries(properties).map(([name, value]) => [
    name,
    arbitraryOf(value as Schema),
  ])
  const named = fc.record(Object.fromEntries(values), { requiredKeys: required as never[] })
  if (additionalProperties !== true) return named
  const others = fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 3 }))
  return fc.tuple(others, named).map(([more, object]) => ({ ...more, ...object }))
}

function stringOf({ minLength = 0, maxLength = 200, pattern }: Schema): fc.Arbitrary<string> {
  // fast-check cannot generate strings for a pattern with \p{…}.
  if (pattern !== undefined && !pattern.includes('\\p')) {
    return fc.stringMatching(new RegExp(pattern, 'u'))
  }
  const text = fc.string({ unit: 'grapheme', minLength, maxLength })
  const allowed = new RegExp(pattern ?? '', 'u')
  return text.filter((value) => allowed.test(value) && [...value].length <= maxLength)
}

/** Values that this object schema almost allows; some are valid by chance. */
export function mutationOf(schema: Schema): fc.Arbitrary<unknown> {
  const name = fc.oneof(fc.constantFrom(...Object.keys(schema.properties ?? {}), 'x'), fc.string())
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom('', '\u0000', '\u202e', '\ud800', 1e308, -0, null, undefined),
  )
  const changed = fc
    .tuple(objectOf(schema), name, value)
    .map(([object, key, other]) => ({ ...object, [key]: other }))
  return fc.oneof({ arbitrary: changed, weight: 3 }, { arbitrary: fc.jsonValue(), weight: 1 })
}
