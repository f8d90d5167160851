import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'

export interface DoctorRun {
  code: number
  text: string
  errors: string
}

const doctorPath = fileURLToPath(new URL('../src/cli.ts', import.meta.url))

/** Runs the doctor for a second. */
export async function runDoctor(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<DoctorRun> {
  const all = [doctorPath, '--watch=1', ...args]
  const options = { env: cleanEnv(await temporaryFolder(), { NO_COLOR: '1', ...env }) }
  return await new Promise((resolve) => {
    execFile(process.execPath, all, options, (error, text, errors) => {
      resolve({ code: Number(error?.code ?? 0), text, errors })
    })
  })
}
