import { execFile } from 'node:child_process'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { cleanEnv } from '@onetrip/stack/testing/programs.ts'
import { loadPath } from '../support/run.ts'

export interface DoctorRun {
  code: number
  text: string
  errors: string
}

/** Runs `npm run load -- doctor` for a second. */
export async function runDoctor(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<DoctorRun> {
  const all = [loadPath, 'doctor', '--watch=1', ...args]
  const options = { env: cleanEnv(await temporaryFolder(), { NO_COLOR: '1', ...env }) }
  return await new Promise((resolve) => {
    execFile(process.execPath, all, options, (error, text, errors) => {
      resolve({ code: Number(error?.code ?? 0), text, errors })
    })
  })
}
