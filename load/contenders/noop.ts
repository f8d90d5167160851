import type { Reply } from '@onetrip/session-store'
import { serve } from './support/serve.ts'

// The ceiling: the routes without any Redis work. They still validate, verify the token's signature,
// make the update and read what Redis would have replied: everybody is somebody, and seen just now.

function reply(name: string): Reply {
  if (name === 'HGET') return 'nobody'
  if (name === 'ZSCORE') return String(Date.now() / 1000)
  return name === 'ZRANGE' || name === 'ZREVRANGE' ? [] : '-1'
}

await serve('noop', async () => ({
  send: async ({ commands }) => commands.map((command) => reply(command[0])),
  close: async () => {},
}))
