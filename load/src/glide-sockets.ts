import { readdirSync, rmSync } from 'node:fs'

// valkey-glide talks to its native part through a Unix socket there, whatever TMPDIR says, and never
// removes it (2.5.2).
const FOLDER = '/tmp'

/** Removes what valkey-glide left behind of a process that has ended. */
export function removeGlideSockets(pid: number): void {
  for (const name of readdirSync(FOLDER)) {
    if (name.startsWith(`glide-socket-${pid}-`)) rmSync(`${FOLDER}/${name}`, { force: true })
  }
}
