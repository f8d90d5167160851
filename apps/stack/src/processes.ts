import { readFileSync } from 'node:fs'

/** Whether a process is running. A zombie (exited, but not yet reaped by its parent) is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    // The state follows the name, which is in brackets and may itself contain brackets.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0] !== 'Z'
  } catch {
    return true // no /proc on this system
  }
}
