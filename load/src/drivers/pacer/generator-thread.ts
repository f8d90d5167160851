import { parentPort } from 'node:worker_threads'
import type { FromGenerator } from './generator.ts'
import { type PaceOptions, Pacer } from './pacer.ts'

// The thread that sends: nothing that the command prints or reads can hold it up.

parentPort?.on('message', async (options: PaceOptions) => {
  const tell = (message: FromGenerator) => parentPort?.postMessage(message)
  try {
    const pacer = new Pacer(options)
    const paced = await pacer.run((progress) => tell({ progress }))
    tell({ paced })
  } catch (error) {
    tell({ error: error instanceof Error ? error.message : String(error) })
  }
})
