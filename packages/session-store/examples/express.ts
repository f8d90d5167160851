import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { expressSessions } from '@onetrip/session-store/express'
import express from 'express'

const salt = randomBytes(16)
const hash = async (text: string) => (await promisify(scrypt)(text, salt, 32)) as Buffer
const users = new Map([['ada', await hash('lovelace')]]) // yours are in a database
const nobody = randomBytes(32) // makes an unknown user take as long as a wrong password

const sessions = await expressSessions({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
  cookie: { secure: process.env.NODE_ENV !== 'development' },
})

const app = express()
app.use(sessions.middleware, express.json())

app.post('/login', async (req, res) => {
  const { user, password } = req.body ?? {}
  const isCorrect = timingSafeEqual(await hash(`${password}`), users.get(user) ?? nobody)
  if (!isCorrect) return res.status(401).json({ message: 'wrong user or password' })
  await req.onetrip.login(user)
  return res.json({ user })
})
app.post('/views/:item', async (req, res) => {
  res.json(await req.onetrip.recordView(req.params.item))
})
app.get('/me', async (req, res) => res.json(await req.onetrip.check()))
app.post('/logout', async (req, res) => res.json({ ended: await req.onetrip.logout() }))
app.use(sessions.errorHandler)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => server.close(() => sessions.close()))
