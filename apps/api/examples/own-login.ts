import { DatabaseSync } from 'node:sqlite'
import { serve, verifyPassword } from '@onetrip/api'
import { Type } from 'typebox'

const database = new DatabaseSync(process.env.USERS_DATABASE ?? 'users.db', { readOnly: true })
const byEmail = database.prepare('SELECT id, password FROM users WHERE email = ?')
const byId = database.prepare('SELECT name, email FROM users WHERE id = ?')

await serve({
  authenticator: {
    // The body of POST /login.
    credentials: Type.Object({
      email: Type.String({ maxLength: 128 }),
      password: Type.String({ maxLength: 256 }),
    }),
    // Login attempts are counted by this name: one spelling per user.
    claimedUser: ({ email }) => email.toLowerCase(),
    // The user of the new session, or undefined: then the answer is 401.
    async authenticate({ email, password }) {
      const user = byEmail.get(email.toLowerCase()) as { id: string; password: string } | undefined
      const valid = await verifyPassword(password, user?.password) // as slow without a user
      return valid ? user?.id : undefined
    },
  },
  // Routes that need a session, which has been checked: request.user is its user.
  async routes(app) {
    app.get('/me/profile', async (request) => byId.get(request.user))
  },
  // Routes for everybody.
  async publicRoutes(app) {
    app.get('/welcome', async () => ({ message: 'Log in with POST /login' }))
  },
})
