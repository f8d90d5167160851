import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { OpenAPIV3_1 } from 'openapi-types'

export type ApiDocument = OpenAPIV3_1.Document

interface Content {
  readonly type: string
  readonly schema: OpenAPIV3_1.SchemaObject
  readonly examples: readonly unknown[]
  /** Returns the validation errors of a value; empty: valid. */
  validate(value: unknown): string
}

interface Body {
  readonly name: string
  readonly status: number | 'default'
  readonly content: readonly Content[]
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly operation: OpenAPIV3_1.OperationObject
  readonly parameters: readonly OpenAPIV3_1.ParameterObject[]
  readonly requestBody: readonly Body[]
  readonly responses: readonly Body[]
}

const ajv = new Ajv2020({ strict: false })
formats.default(ajv)
const validators = new WeakMap<object, ValidateFunction>()

function errorsOf(schema: object, value: unknown): string {
  const validate = validators.getOrInsertComputed(schema, () => ajv.compile(schema))
  return validate(value) ? '' : ajv.errorsText(validate.errors)
}

/** The operations of the document, with resolved references. */
export function operationsOf(document: ApiDocument): Operation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item as Record<string, OpenAPIV3_1.OperationObject>).map(
      ([method, operation]) => ({
        method: method.toUpperCase() as Operation['method'],
        path,
        operation,
        parameters: (operation.parameters ?? []) as OpenAPIV3_1.ParameterObject[],
        requestBody: operation.requestBody
          ? [bodyOf(`${method} ${path}`, 0, operation.requestBody as OpenAPIV3_1.ResponseObject)]
          : [],
        responses: Object.entries(operation.responses ?? {}).map(([status, response]) =>
          bodyOf(
            `${method} ${path} ${status}`,
            status === 'default' ? status : Number(status),
            resolve(document, response),
          ),
        ),
      }),
    ),
  )
}

/** Whether an operation accepts no request without a token: an empty requirement makes the token optional. */
export const needsToken = ({ security = [] }: OpenAPIV3_1.OperationObject): boolean =>
  security.length > 0 && !security.some((one) => Object.keys(one).length === 0)

function resolve(
  document: ApiDocument,
  response: OpenAPIV3_1.ReferenceObject | OpenAPIV3_1.ResponseObject,
): OpenAPIV3_1.ResponseObject {
  if (!('$ref' in response)) return response
  const name = response.$ref.replace('#/components/responses/', '')
  return document.components?.responses?.[name] as OpenAPIV3_1.ResponseObject
}

function bodyOf(
  name: string,
  status: Body['status'],
  body: Pick<OpenAPIV3_1.ResponseObject, 'content'>,
): Body {
  const content = Object.entries(body.content ?? {}).map(([type, media]): Content => {
    const schema = (media.schema ?? {}) as OpenAPIV3_1.SchemaObject
    const named = Object.values(media.examples ?? {}) as OpenAPIV3_1.ExampleObject[]
    const examples = [
      ...(media.example === undefined ? [] : [media.example]),
      ...named.map(({ value }) => value),
      ...(schema.examples ?? []),
    ]
    return { type, schema, examples, validate: (value) => errorsOf(schema, value) }
  })
  return { name, status, content }
}
