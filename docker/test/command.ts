import { spawn } from 'node:child_process'

export interface Finished {
  /** null if a signal ended the command. */
  code: number | null
  stdout: string
  /** Standard output and standard error, in order of arrival. */
  output: string
}

export interface CommandOptions {
  env?: NodeJS.ProcessEnv
  /** Shows the output while the command runs. */
  show?: boolean
}

/** Runs a command to its end. Any exit code is accepted. */
export async function run(
  [command = '', ...args]: readonly string[],
  { env = process.env, show = false }: CommandOptions = {},
): Promise<Finished> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    output += text
    if (show) process.stdout.write(text)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (show) process.stderr.write(text)
  })
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.once('error', reject)
  child.once('close', resolve)
  return { code: await promise, stdout, output }
}

/**
 * Returns the standard output of a command that must succeed.
 *
 * @throws Error with the output of a command that failed.
 */
export async function outputOf(
  command: readonly string[],
  options?: CommandOptions,
): Promise<string> {
  const { code, stdout, output } = await run(command, options)
  if (code === 0) return stdout
  throw new Error(`${command.join(' ')} ended with ${code}:\n${output.slice(-4_000)}`)
}

/** Whether a command exists and succeeds. */
export async function succeeds(command: readonly string[]): Promise<boolean> {
  try {
    return (await run(command)).code === 0
  } catch {
    return false
  }
}
