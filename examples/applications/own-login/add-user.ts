import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { Writable } from 'node:stream'
import { hashPassword } from './passwords.ts'

// Adds a user to the database of own-login.ts, or changes name and password. The password is the first line of
// standard input. A terminal does not show it.

const [path, email, name] = process.argv.slice(2)
if (!path || !email || !name) {
  console.error('Usage: node add-user.ts users.db ada@example.com Ada')
  process.exit(1)
}
const terminal = process.stdin.isTTY === true
if (terminal) process.stderr.write(`Password for ${email}, which is not shown: `)
const output = new Writable({ write: (_chunk, _encoding, done) => done() })
let password = ''
for await (const line of createInterface({ input: process.stdin, output, terminal })) {
  password = line
  break
}
if (terminal) process.stderr.write('\n')
if (password.length < 8 || password.length > 256) {
  console.error('The password must have 8 to 256 characters.')
  process.exit(1)
}
process.umask(0o077) // the file contains hashes of passwords
const database = new DatabaseSync(path)
database.exec(
  'CREATE TABLE IF NOT EXISTS users (id TEXT PRIMARY KEY, name TEXT, email TEXT UNIQUE, password TEXT)',
)
database
  .prepare(
    `INSERT INTO users VALUES (?, ?, ?, ?)
     ON CONFLICT (email) DO UPDATE SET name = excluded.name, password = excluded.password`,
  )
  .run(randomUUID(), name, email.toLowerCase(), await hashPassword(password))
database.close()
console.log(`Set the password of ${email} in ${path}.`)
process.exit()
