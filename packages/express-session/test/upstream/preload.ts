import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { connect, disconnect } from './stores.ts'

// Runs in each process of tests, before them.

type Body = (this: object, done: (error?: unknown) => void) => unknown

/** What mocha passes as `this`. */
const context = {}

/** Mocha's functions take callbacks. */
const promised = (body: Body) => () => {
  if (body.length === 0) return body.call(context, () => undefined)
  return new Promise<void>((resolve, reject) => {
    body.call(context, (error) => (error ? reject(error) : resolve()))
  })
}

if (process.env.UPSTREAM_RUNNER === 'mocha') {
  Object.assign(globalThis, {
    describe,
    it: (name: string, body: Body) => it(name, promised(body) as () => Promise<void>),
    before: (body: Body) => before(promised(body) as () => Promise<void>),
    after: (body: Body) => after(promised(body) as () => Promise<void>),
    beforeEach: (body: Body) => beforeEach(promised(body) as () => Promise<void>),
    afterEach: (body: Body) => afterEach(promised(body) as () => Promise<void>),
  })
}

await connect()
after(disconnect)
