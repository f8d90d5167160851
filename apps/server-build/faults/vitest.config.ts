import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Minutes, not seconds: `npm run test:redis-faults`, apart from `npm test`.
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
