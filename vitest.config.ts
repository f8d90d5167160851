import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

// A file's suffix says what its tests need: *.test.ts nothing but Node, *.redis.test.ts a Redis that
// apps/server-build built, *.slow.test.ts one, and together minutes (npm run test:slow), *.cluster.test.ts
// several of them (npm run test:cluster), *.fault.ts one, and minutes (npm run test:faults),
// *.compose.test.ts a Docker engine (npm run test:compose), *.browser.test.ts Chromium and a Redis
// (npm run test:browser). npm test leaves the last five out.

// Tests start hundreds of processes, each of which would compile the same sources again.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.onetrip/compile-cache')

/** For a machine with a load of ten per core; vitest itself gives a second. */
const expectOptions = { poll: { timeout: 60_000 } }

export default defineConfig({
  test: {
    maxWorkers: '100%', // of the cores; the default leaves one of them to a developer
    projects: [
      {
        test: {
          name: 'unit',
          expect: expectOptions,
          include: ['**/*.test.ts', '.bootstrap/*.test.ts'],
          exclude: [
            '**/node_modules/**',
            '**/.onetrip/**',
            '**/*.{redis,slow,cluster,browser,compose}.test.ts',
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
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 300_000,
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
      {
        // The store with the other ioredis that its package.json allows: what touches a client.
        resolve: { alias: { ioredis: 'ioredis-5' } },
        test: {
          name: 'ioredis-5',
          expect: expectOptions,
          include: [
            'packages/session-store/test/{batch,client,cluster,database,faults}.redis.test.ts',
            'packages/session-store/test/{janitor,prefix,races,store,unexpected}.redis.test.ts',
          ],
          globalSetup: ['apps/stack/src/testing/build-redis.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
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
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
})
