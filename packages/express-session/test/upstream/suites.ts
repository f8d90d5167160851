import { fileURLToPath } from 'node:url'

/** Tests that other projects have written for their sessions. They run on our stores. */
export interface Suite {
  /** The package that they test, as it is installed here. It has the tests, unless there is a `repository`. */
  name: string
  /** The folder of `packages` with its dependencies. Default `express-session`. */
  workspace?: string
  repository?: string
  commit?: string
  /** The tests in the repository, or in the package, and what they need: path → SHA-256. */
  files: Record<string, string>
  /** `mocha`: functions such as `it` are global, and take callbacks. */
  runner: 'mocha' | 'node' | 'vitest'
  /** Files of ours that take the place of theirs: path → text. */
  replaced: Record<string, string>
  /** Texts in the tests that change, with the reason. */
  edits?: { find: string | RegExp; text: string; why: string }[]
  /** The number of tests. */
  tests: number
  /** Tests that cannot pass: name → reason. */
  known: Record<string, string>
}

const ours = (file: string) => JSON.stringify(fileURLToPath(new URL(file, import.meta.url)))
const required = (name: string) => `module.exports = require(${ours('./stores.ts')}).${name}\n`

const MAP = 'reads or fills the Map of the memory store'
const LATE = 'ends before a store can answer that does not do so at once'

export const suites: readonly Suite[] = [
  {
    name: 'express-session',
    repository: 'expressjs/session',
    commit: 'c10b2a383841766899f6dcf53c8aff8c7fd3d2e7', // 1.19.0
    runner: 'mocha',
    files: {
      'test/cookie.js': '37b3439889bc94d1e1e4f071ff332caf0a10eef3ab528f7ed2a7182a843dfc12',
      'test/session.js': '40510202e3a3c20636b6c5ac329590973c222ee0432c7672e3a51f364211124c',
      'test/support/gencert.sh': 'a1088185299dd6af59c4e29ff99066552cdf7d0bdb90ad6f8dbc586b9ebdc30c',
      'test/support/smart-store.js':
        'b60634995ae851802ac1bceef0c6448fa2572052d634052e92db8387dc473441',
      'test/support/sync-store.js':
        '07068b3bde478aec9d33bd67258a8026dbef2a1a799bda8f66a808b59fa4694d',
      'test/support/utils.js': '2b0622d02ab12a82d341aad61af5cd28350f4c7fd070d52939e9a1e4d5ab0312',
    },
    replaced: { 'session/memory.js': required('ExpressMemory') },
    tests: 160, // 142 of them in session.js
    known: {},
  },
  {
    name: '@fastify/session',
    repository: 'fastify/session',
    commit: '4f7c3f28f267ad6e1f1a2ace5df89101b5ddb08c', // after 11.1.2; index.js and lib are those of 11.1.3
    runner: 'node',
    files: {
      'test/base.test.js': 'f46a45a3f0f0367d9d9277441f468412043f91d8924c52283ca25fa3f5a207ac',
      'test/cookie.test.js': 'f1488a36b7ec2a22736310747cea1c06b2847ba30530f905cb9956b7a8e2fb57',
      'test/expiration.test.js': '657a7b9f15f985efafcacbf3c75d508e5fc52f33b74a81551ff849db4ce39d8d',
      'test/fastifySession.checkOptions.test.js':
        'cf30c2314b8dbb829151cc166e65b6d3f59bbcf4bd8ab82dbded84e9554a9ef4',
      'test/idGenerator.test.js':
        'ff76d42e712ed5fa3124da9e09d98b07f9cf7f630f754050394174f7f24998b2',
      'test/memorystore.test.js':
        '45628594e82686a5455b81ced12fdc9b66283f2bcc626cf80c5e6d02917c0d39',
      'test/session.test.js': '282aea2719c7f0356f1c0b8b800868d5b625695113aa023fbf356f08e9f60d3a',
      'test/store.test.js': '7d3882d077aff49a1557b2ac55f158bd3c4ead139fabc784ed4234b2673f66fc',
      'test/util.js': '238295f6946a99aa63b7d20ff846def812fa37c081fe513b4b198f20c4dbb1ab',
      'test/verifyPath.test.js': '245b9707832f67cc63806dc2ad1cac929b5de405df09168f737e5765d50f12d9',
    },
    replaced: {
      'lib/store.js': required('FastifyMemory'),
      'test/TestStore.js': required('FastifyMemory'),
    },
    tests: 126,
    known: {
      'MemoryStore.constructor: created MemoryStore should be an EventEmitter': MAP,
      'MemoryStore.constructor: should accept a Map as internal store': MAP,
      'MemoryStore.set: should successfully set a value to sessionId ': MAP,
      'MemoryStore.get: should successfully get a value for a valid sessionId ': MAP,
      'MemoryStore.get: should return undefined for an invalid sessionId ': MAP,
      'MemoryStore.destroy: should remove a sessionId / 1': MAP,
      'MemoryStore.destroy: should remove a sessionId / 2': MAP,
      'MemoryStore.destroy: should not remove stored sessions if invalidId is provided': MAP,
      'should save the session properly': MAP,
      'should support multiple secrets': MAP,
      'regenerate destroys the previous session in the store': MAP,
      'should decryptSession with custom request object': LATE,
      'should decryptSession with custom cookie options': LATE,
      'Custom options': LATE,
    },
  },
  {
    name: 'connect-redis',
    runner: 'vitest',
    files: {
      'index_test.ts': '4d71d00e918fa8a6844b1bf8160eb245e2f56b208b8ae2b0e20aa53cdda354b0',
    },
    replaced: {
      'index.ts': `export { ConnectRedis as RedisStore } from ${ours('./stores.ts')}\n`,
      'testdata/server.ts': `export { connect, disconnect, port } from ${ours('./stores.ts')}\n`,
    },
    edits: [
      {
        find: 'expires: expires.toISOString()',
        text: 'expires: expires2.toISOString()',
        why: 'touch stores the cookie, as express-session’s own memory store does',
      },
    ],
    tests: 4,
    known: { defaults: 'reads the options of connect-redis' },
  },
  {
    name: 'better-auth',
    workspace: 'better-auth',
    repository: 'better-auth/better-auth',
    commit: '2344536054f9164ca5d1670c270d299049ee233e', // 1.7.1
    runner: 'vitest',
    files: {
      'packages/better-auth/src/db/secondary-storage.test.ts':
        'ccdad25414c8c03aac9dec38c964c29a859b84c240683612de5f2595f01812d8',
    },
    replaced: {},
    edits: [
      {
        find: /function (create\w+SecondaryStorage)/g,
        text: 'function other_$1',
        why: 'the storages are ours',
      },
      {
        find: /^/,
        text: `import { createParsedSecondaryStorage, createStringSecondaryStorage } from ${ours('./better-auth.ts')}\n`,
        why: 'the storages are ours',
      },
      {
        find: /"\.\.\/plugins\/\w+\/client"/g,
        text: '"better-auth/client/plugins"',
        why: 'packed',
      },
      {
        find: /"\.\.\/plugins\/(admin\/admin|anonymous)"/g,
        text: '"better-auth/plugins"',
        why: 'packed',
      },
      { find: '"../client"', text: '"better-auth/client"', why: 'packed' },
      { find: '"../test-utils/test-instance"', text: '"better-auth/test"', why: 'packed' },
    ],
    tests: 10,
    known: {},
  },
]
