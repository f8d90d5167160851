import { Problem } from '@onetrip/stack/problem.ts'
import { Option } from 'commander'
import { packageVersion } from '../../measure/package-version.ts'
import { saturateByAutocannon } from './autocannon.ts'
import type { Saturate } from './saturate.ts'
import { saturateByWrk, wrkVersion } from './wrk.ts'

/** What sends the requests at full speed. */
const generators = ['autocannon', 'wrk'] as const
export type GeneratorName = (typeof generators)[number]

export const generatorOption = () =>
  new Option('--generator <name>', 'what sends the requests')
    .choices(generators)
    .default('autocannon')

export interface Generator {
  /** Name and version. */
  name: string
  saturate: Saturate
}

/**
 * @param options `duration` and `warmup` in seconds.
 * @throws Problem when it is not installed, or cannot do what the options say.
 */
export async function findGenerator(options: {
  generator: GeneratorName
  duration: number
  warmup: number
}): Promise<Generator> {
  if (options.generator === 'autocannon') {
    return { name: packageVersion('autocannon'), saturate: saturateByAutocannon }
  }
  for (const name of ['duration', 'warmup'] as const) {
    if (Number.isInteger(options[name])) continue
    throw new Problem(`--${name} ${options[name]}: wrk runs for whole seconds.`)
  }
  return { name: await wrkVersion(), saturate: saturateByWrk }
}
