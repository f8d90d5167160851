import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// `npm run test:redis-faults`. Separate from `npm test`, because these tests take minutes.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  test: {
    include: ['*.fault.ts'],
    testTimeout: 300_000,
    hookTimeout: 1_200_000, // builds
    expect: { poll: { timeout: 30_000 } },
    fileParallelism: false,
    reporters: ['verbose'],
  },
})
