import { defineConfig } from 'vitest/config'

// A file's suffix says what its tests need: *.test.ts nothing but Node, *.redis.test.ts a Redis that
// apps/server-build built. Only the second kind waits for the build.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['**/*.test.ts', '.bootstrap/*.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**', '**/*.redis.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'redis',
          include: ['**/*.redis.test.ts'],
          exclude: ['**/node_modules/**', '**/.onetrip/**'],
          globalSetup: ['.vitest/build-redis.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
