import { serve } from './support/serve.ts'

// The ceiling: the route without any Redis work. It still validates the body, verifies the token's
// signature, makes the update and reads what Redis would have replied.

await serve('noop', async () => ({
  send: async ({ commands }) => commands.map(([name]) => (name === 'HGET' ? 'nobody' : '-1')),
  close: async () => {},
}))
