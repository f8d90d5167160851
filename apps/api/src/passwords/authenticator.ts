import type { Authenticator } from '../authenticator.ts'
import { PasswordCredentials } from '../schemas.ts'
import { requireArgon2 } from './hash.ts'
import { normalizedName, UsersFile } from './users-file.ts'

/**
 * Checks passwords against a users file (`AUTH=password`). A login reads the file again if it has changed. If
 * the changed file is invalid, the users loaded before stay valid.
 *
 * @param onProblem Called when a changed file is invalid, once per problem.
 * @throws Error if the file is invalid at startup, or Node has no Argon2.
 */
export async function passwordAuthenticator(
  path: string,
  onProblem: (error: Error) => void,
): Promise<Authenticator<typeof PasswordCredentials>> {
  requireArgon2()
  const file = await UsersFile.open(path)
  let lastProblem = ''
  const reload = async () => {
    try {
      await file.reload()
      lastProblem = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== lastProblem) onProblem(error as Error)
      lastProblem = message
    }
  }
  return {
    credentials: PasswordCredentials,
    claimedUser: ({ user }) => normalizedName(user),
    remembers: ({ remember = false }) => remember,
    async authenticate({ user, password }) {
      await reload()
      const name = normalizedName(user)
      return (await file.verify(name, password)) ? name : undefined
    },
  }
}
