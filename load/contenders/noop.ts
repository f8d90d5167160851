import type { Reply } from '@onetrip/session-store'
import { serve } from './support/serve.ts'

// The routes of apps/api without Redis. They validate requests, verify tokens, build the commands and
// parse constant replies: every session belongs to the user `nobody` and was seen just now.

function reply(name: string): Reply {
  if (name === 'HGET') return 'nobody'
  if (name === 'TYPE') return 'none'
  if (name === 'ZSCORE') return String(Date.now() / 1000)
  return name === 'ZRANGE' || name === 'ZREVRANGE' ? [] : '-1'
}

await serve('noop', async () => ({
  send: async ({ commands }) => commands.map((command) => reply(command[0])),
  close: async () => {},
}))
