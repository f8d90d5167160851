import { readFileSync } from 'node:fs'
import { createSessionStore } from '@onetrip/session-store'

const file = (name: string) => readFileSync(process.env[name] ?? '')

const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'rediss://shop:password@redis.example:6379',
  tls: {
    ca: file('CA_FILE'), // default: the authorities that Node trusts
    cert: file('CERT_FILE'), // where Redis asks for a certificate (tls-auth-clients)
    key: file('KEY_FILE'),
    servername: 'redis.test', // default: the host of the URL, for SNI and in the certificate
  },
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
})
await store.ready()
console.log(await store.login('ada').then(({ token }) => store.recordView(token, 'book')))
await store.close()
