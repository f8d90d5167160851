import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// A file's suffix says what its tests need:
//   *.test.ts           only Node
//   *.redis.test.ts     a Redis built by apps/server-build
//   *.slow.test.ts      a Redis and its tools, and together minutes (npm run test:slow)
//   *.languages.test.ts compilers of other languages, and on a new machine minutes to use them (also test:slow)
//   *.cluster.test.ts   several Redis servers         (npm run test:cluster)
//   *.fault.ts          a Redis, and some minutes     (npm run test:faults)
//   *.compose.test.ts   a Docker engine               (npm run test:compose)
//   *.browser.test.ts   Chromium and a Redis          (npm run test:browser)
// npm test runs the first two.

// Tests start hundreds of processes, each of which would compile the same sources again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.onetrip/compile-cache')

/** Enough for a machine with a load of ten per core. Vitest's default is one second. */
const expectOptions = { poll: { timeout: 60_000 } }

/** The tests of the store in which the version of the client can matter, with another copy of ioredis. */
const withIoredis = (name: string, copy: string): TestProjectInlineConfiguration => ({
  resolve: { alias: { ioredis: copy } },
  test: {
    name,
    expect: expectOptions,
    include: [
      'packages/session-store/test/{batch,client,database,faults}.redis.test.ts',
      'packages/session-store/test/{handshake,store}.redis.test.ts',
      'packages/cluster/test/*.redis.test.ts',
    ],
    globalSetup: ['apps/stack/src/testing/build-redis.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})

/** The tests of the store that need no server, only its data model: with the memory of `createTestStore`. */
const inMemory: TestProjectInlineConfiguration = {
  resolve: {
    alias: {
      '@onetrip/stack/testing/redis.ts': join(
        import.meta.dirname,
        'packages/testing/test/memory-server.ts',
      ),
    },
  },
  test: {
    name: 'memory',
    expect: expectOptions,
    env: { ONETRIP_TEST_MEMORY: 'on' },
    include: [
      'packages/session-store/test/{attempts,data,data-fields,guests,interleaving}.redis.test.ts',
      'packages/session-store/test/{item-counts,janitor,races,renewal,repeated-*}.redis.test.ts',
      'packages/session-store/test/{retention,store,user-*,watch}.redis.test.ts',
      'packages/session-store/test/web/several-cookies.redis.test.ts',
      'packages/express-session/test/{contract,users,user-races}.redis.test.ts',
    ],
    testTimeout: 120_000,
  },
}

/** Only for `.ci/newest-ioredis`: the folder of the copy that it tests. */
const newestIoredis = process.env.NEWEST_IOREDIS

/** Lists the version of this copy of ioredis as verified, so that the tests run with frames. */
function verified(copy: string) {
  const { version } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'))
  return {
    name: 'verified-ioredis',
    transform(code: string, path: string) {
      if (!path.endsWith('/redis/ioredis-version.ts')) return undefined
      const changed = code.replace('const verified = [', `const verified = ['${version}', `)
      if (changed === code) throw new Error(`${path} has no list of verified versions`)
      return changed
    },
  }
}

/**
 * Starts the files of the slow, cluster, browser and fault tests first: as the last ones, they would leave cores idle.
 * By name, which mixes tests that wait with tests that compute.
 */
class LongKindsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\.(slow|cluster|browser|fault)\./.test(moduleId)
    const byName = (a: TestSpecification, b: TestSpecification) =>
      basename(a.moduleId).localeCompare(basename(b.moduleId))
    const others = files.filter((file) => !isLong(file))
    return [...files.filter(isLong).sort(byName), ...(await super.sort(others))]
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongKindsFirst },
    // More than cores, because many tests wait: for elections, timeouts, and programs that start. With four workers, the
    // two cores of a machine were idle for a tenth of `.ci/run`.
    maxWorkers: availableParallelism() + 3,
    projects: [
      {
        test: {
          name: 'unit',
          expect: { poll: { timeout: 50_000 } }, // less than testTimeout, so that a poll reports why it failed
          include: ['**/*.test.ts', '.bootstrap/*.test.ts'],
          exclude: [
            '**/node_modules/**',
            '**/.onetrip/**',
            '**/*.{redis,slow,languages,cluster,browser,compose}.test.ts',
          ],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'redis',
          expect: expectOptions,
          include: ['**/*.redis.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'slow',
          expect: expectOptions,
          include: ['**/*.slow.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: [
            'apps/stack/src/testing/build-redis.ts',
            'apps/stack/src/testing/build-tools.ts',
          ],
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'languages',
          expect: expectOptions,
          include: ['**/*.languages.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'cluster',
          expect: expectOptions,
          include: ['**/*.cluster.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'browser',
          expect: expectOptions,
          include: ['**/*.browser.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: [
            'apps/stack/src/testing/build-redis.ts',
            'apps/stack/src/testing/find-chromium.ts',
          ],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      inMemory,
      withIoredis('ioredis-5', 'ioredis-5'), // which the package.json of the store also allows
      ...(newestIoredis
        ? [{ ...withIoredis('newest-ioredis', newestIoredis), plugins: [verified(newestIoredis)] }]
        : []),
      {
        test: {
          name: 'faults',
          expect: expectOptions,
          include: ['apps/api/faults/*.fault.ts', 'load/faults/*.fault.ts'],
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'compose',
          expect: expectOptions,
          include: ['docker/test/*.compose.test.ts'],
          globalSetup: ['docker/test/setup.ts'],
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
})
