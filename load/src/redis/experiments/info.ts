import { Redis } from 'ioredis'
import { summarize } from '../../statistics.ts'
import { infoFigures } from '../documents.ts'
import type { Experiment } from '../experiment.ts'
import { addRounds, type RoundsOptions } from '../options.ts'
import { percent, withRange } from '../report.ts'
import { interleave, samplesOf } from '../rounds.ts'
import { cpuBetween } from '../threads.ts'

const commands = ['INFO', 'CLIENT LIST'] as const

/** What a client that asks for statistics without pause costs the server. */
export const info: Experiment<RoundsOptions> = {
  name: 'info',
  summary: 'what INFO and CLIENT LIST cost a server',
  about: `
The documents' Redis walked its whole client list for each INFO.

Examples:
  npm run load -- redis info --quick`,
  configure: (command) => addRounds(command, { rounds: 3, duration: 2 }),
  quick: { rounds: 1, duration: 1 },

  async run(context, { rounds, duration }) {
    const server = await context.startRedis({ build: 'stock', tcp: false })
    const client = new Redis(server.socket)
    context.defer(() => client.disconnect())
    const samples = await interleave(context, {
      variants: commands,
      rounds,
      label: (command) => command,
      async measure(command) {
        const before = await server.cpu()
        const end = performance.now() + duration * 1_000
        const [name = '', ...args] = command.split(' ')
        let answered = 0
        while (performance.now() < end && !context.signal.aborted) {
          await client.call(name, ...args)
          answered += 1
        }
        const cpu = cpuBetween(before, await server.cpu())
        return { answered, cpuShare: cpu.cpuSeconds / cpu.seconds }
      },
      describe: ({ answered, cpuShare }) => `${answered} answers, CPU ${percent(cpuShare)}`,
    })
    const rows = commands.map((command) => {
      const runs = samplesOf(samples, command)
      return [
        command,
        withRange(summarize(runs.map((run) => run.cpuShare * 100))),
        withRange(summarize(runs.map((run) => run.answered / duration))),
      ]
    })
    return {
      tables: [{ head: ['command', 'CPU of Redis\n% of a core', 'answers/s'], rows }],
      conclusions: [],
      documents: infoFigures,
      data: { samples },
    }
  },
}
