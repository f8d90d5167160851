import { serve } from './support/serve.ts'

// The ceiling: the route without any Redis work. It still validates the body, verifies the token's
// signature, makes the update and reads what Redis would have replied.

const replies = ['nobody', 0, 1, 0, '-1']

await serve('noop', async () => ({
  send: async () => replies,
  close: async () => {},
}))
