import { fileURLToPath } from 'node:url'
import type { saturateByAutocannon } from '@onetrip/stack/measure/autocannon.ts'
import type { SpeedSample } from '@onetrip/stack/measure/speed.ts'
import type { WorkloadOptions } from '@onetrip/stack/measure/workload.ts'
import { endOf, startProgram } from '@onetrip/stack/program.ts'

const program = fileURLToPath(new URL('generator.ts', import.meta.url))

/** A run at full speed against `url`, for `seconds`. */
export type GeneratorRun = WorkloadOptions & { url: string; seconds: number }

export type Generator = Awaited<ReturnType<typeof startGenerator>>

export type GeneratorResult = Awaited<ReturnType<typeof saturateByAutocannon>>

/**
 * Starts the load generator as a separate process, so that it does not slow down this one. It exits with this
 * process.
 *
 * @throws ProgramError if it does not start; the reason of `signal`.
 */
export async function startGenerator(signal: AbortSignal) {
  let onSample: ((sample: SpeedSample) => void) | undefined
  let onResult: ((result: GeneratorResult) => void) | undefined
  const generator = await startProgram({
    name: 'the load generator',
    command: process.execPath,
    args: [program],
    input: true,
    ready: /"event":"ready"/,
    signal,
    onLine(line) {
      if (!line.startsWith('{"event"')) return
      const { event, data } = JSON.parse(line)
      if (event === 'sample') onSample?.(data)
      else if (event === 'result') onResult?.(data)
    },
  })
  return {
    stop: async (): Promise<void> => void (await generator.stop()),
    /** Runs a load, one at a time. @throws ProgramError if the program exits meanwhile. */
    async run(
      options: GeneratorRun,
      sample: (sample: SpeedSample) => void = () => {},
    ): Promise<GeneratorResult> {
      onSample = sample
      const { promise, resolve, reject } = Promise.withResolvers<GeneratorResult>()
      onResult = resolve
      void generator.exited.then(async () => reject(await endOf(generator)))
      generator.write(JSON.stringify(options))
      return await promise
    },
  }
}
