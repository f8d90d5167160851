import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const salt = randomBytes(16)
const hash = async (text: string) => (await promisify(scrypt)(text, salt, 32)) as Buffer
const nobody = randomBytes(32) // makes an unknown user take as long as a wrong password

// Replace this: your users are in a database, each with a salt.
const { ADA_PASSWORD } = process.env
const users = new Map<string, Buffer>()
if (ADA_PASSWORD) users.set('ada', await hash(ADA_PASSWORD))

export async function isPasswordOf(user: string, password: string): Promise<boolean> {
  return timingSafeEqual(await hash(password), users.get(user) ?? nobody)
}
