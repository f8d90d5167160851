import { DatabaseSync } from 'node:sqlite'
import { serve } from '@onetrip/api'
import { Type } from 'typebox'
import { verifyPassword } from './passwords.ts'

const database = new DatabaseSync(process.env.USERS_DATABASE ?? 'users.db', { readOnly: true })
const byEmail = database.prepare('SELECT id, password FROM users WHERE email = ?')
const byId = database.prepare('SELECT name, email FROM users WHERE id = ?')

await serve({
  authenticator: {
    // Schema of the body of POST /login.
    credentials: Type.Object({
      email: Type.String({ maxLength: 128 }),
      password: Type.String({ maxLength: 256 }),
    }),
    // Key of the login rate limit: one spelling per user.
    claimedUser: ({ email }) => email.toLowerCase(),
    // Returns the user of the new session, or undefined for a 401.
    async authenticate({ email, password }) {
      const user = byEmail.get(email.toLowerCase()) as { id: string; password: string } | undefined
      const valid = await verifyPassword(password, user?.password) // takes as long without a user
      return valid ? user?.id : undefined
    },
  },
  // Routes that need a session. The API has checked it: request.user is its user.
  async routes(app) {
    app.get('/me/profile', async (request) => byId.get(request.user))
  },
  // Routes without a session.
  async publicRoutes(app) {
    app.get('/welcome', async () => ({ message: 'Log in with POST /login' }))
  },
})
