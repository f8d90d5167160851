import { expect, test } from 'vitest'
import { toJson } from '../../src/report/json.ts'

test('it is the same JSON, with six digits', () => {
  const result = {
    text: 'a "b" {c}, [d]\n',
    third: 1 / 3,
    whole: 123_456_789,
    nothing: null,
    left: undefined,
    empty: [{}, [], ''],
    deep: { list: [1, [2, { three: 3 }]], no: Number.NaN },
  }
  expect(JSON.parse(toJson(result))).toEqual({
    ...JSON.parse(JSON.stringify(result)),
    third: 0.333333,
  })
})

test('what fits into a line is in one', () => {
  const sample = { variant: 'batch', latency: { p50: 1, p99: 2 } }
  const text = toJson({ format: 'x', samples: Array.from({ length: 3 }, () => sample) })
  const line = '    { "variant": "batch", "latency": { "p50": 1, "p99": 2 } }'
  expect(text).toBe(`{\n  "format": "x",\n  "samples": [\n${line},\n${line},\n${line}\n  ]\n}\n`)
  expect(toJson({ a: [] })).toBe('{ "a": [] }\n')
})
