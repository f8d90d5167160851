import { Problem } from '@onetrip/stack/problem.ts'
import { packageVersion } from '../../measure/package-version.ts'
import { saturateByAutocannon } from './autocannon.ts'
import type { GeneratorName, Saturate } from './generator.ts'
import { saturateByWrk, wrkVersion } from './wrk.ts'

export interface Generator {
  /** Name and version. */
  name: string
  saturate: Saturate
}

interface GeneratorOptions {
  generator: GeneratorName
  /** Seconds. */
  duration: number
  warmup: number
}

/** @throws Problem when it is not installed, or cannot do what the options say. */
export async function findGenerator(options: GeneratorOptions): Promise<Generator> {
  if (options.generator === 'autocannon') {
    return { name: await packageVersion('autocannon'), saturate: saturateByAutocannon }
  }
  for (const name of ['duration', 'warmup'] as const) {
    if (Number.isInteger(options[name])) continue
    throw new Problem(`--${name} ${options[name]}: wrk runs for whole seconds.`)
  }
  return { name: `wrk ${await wrkVersion()}`, saturate: saturateByWrk }
}
