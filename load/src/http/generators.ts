import { packageVersion } from '../measure/package-version.ts'
import { Problem } from '../problem.ts'
import { saturateByAutocannon } from './autocannon.ts'
import type { Saturate } from './generator.ts'
import type { HttpOptions } from './options.ts'
import { saturateByWrk, wrkVersion } from './wrk.ts'

export interface Generator {
  /** Name and version. */
  name: string
  saturate: Saturate
}

/**
 * The generator that the options ask for.
 *
 * @throws Problem when it is not installed, or cannot do what the options say.
 */
export async function findGenerator(options: HttpOptions): Promise<Generator> {
  if (options.generator === 'autocannon') {
    return { name: await packageVersion('autocannon'), saturate: saturateByAutocannon }
  }
  for (const name of ['duration', 'warmup'] as const) {
    if (Number.isInteger(options[name])) continue
    throw new Problem(`--${name} ${options[name]}: wrk runs for whole seconds.`)
  }
  return { name: `wrk ${await wrkVersion()}`, saturate: saturateByWrk }
}
