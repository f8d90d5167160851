import { seconds, wholeNumber } from '@onetrip/stack/parsers.ts'
import { Redis } from 'ioredis'
import { figure } from '../../table.ts'
import type { Experiment } from '../experiment.ts'
import { interleave } from '../rounds.ts'
import { fill } from './slow-reader-client.ts'
import { watchMemory } from './slow-reader-memory.ts'
import { modes, UNLIMITED } from './slow-reader-modes.ts'
import { conclusions, type Sample, table } from './slow-reader-report.ts'

interface SlowReaderOptions {
  rounds: number
  /** How much Redis is asked for in each run. */
  megabytes: number
  /** Seconds for which a client that reads nothing sends. */
  duration: number
}

const MEGABYTE = 2 ** 20

/** A client that reads nothing keeps its connection for this share of the time that it has sent. */
const HOLD = 0.5

/** What replies that nobody reads do to a server, and what keeps it from that. */
export const slowReader: Experiment<SlowReaderOptions> = {
  name: 'slow-reader',
  summary: 'the memory of a server whose client pipelines reads and does not read the replies',
  about: `
A plain socket sends GET, MGET, HGETALL and LRANGE, each answered with 10 kB, at an even pace, and
reads nothing: without limits; with a limit on the replies that wait for one client
(client-output-buffer-limit), on what all clients together have (maxmemory-clients), and on all memory
(maxmemory). Limits are a quarter of what is asked for. Another client writes a key every 25 ms.

The same reads are then sent by a client that takes every reply at once, in one pipeline and in
pipelines of 100, and about as many bytes are read through our store (viewedItems, two commands),
whose process stops for 0.3 s in between: with 500 calls at a time, and with all of them at once, of
which the store refuses those beyond 1,000 in flight.

Memory is what Redis has allocated (used_memory) beyond what it had before the run; it is looked at
every 2 ms. One Redis of our build, over TCP.

Examples:
  npm run load -- redis slow-reader --quick
  npm run load -- redis slow-reader --megabytes 256 --rounds 1`,

  configure(command) {
    command
      .option('--rounds <n>', 'how often each variant is run', wholeNumber(1, 100), 3)
      .option('--megabytes <n>', 'replies that are asked for in a run', wholeNumber(16, 512), 64)
      .option('--duration <seconds>', 'how long they are asked for', seconds(0.1, 60), 1)
  },
  quick: { rounds: 1, duration: 0.5 },

  async run(context, { rounds, megabytes, duration }) {
    const server = await context.startRedis({ build: 'patched' })
    const redis = new Redis(server.socket)
    context.defer(() => redis.disconnect())
    await fill(redis)
    const { signal } = context
    const replyBytes = megabytes * MEGABYTE
    const sendMs = duration * 1_000
    const url = `redis://127.0.0.1:${server.port}`
    const work = { url, replyBytes, sendMs, holdMs: sendMs * HOLD, signal }
    const variants = modes(replyBytes / 4)
    const taken = await interleave(context, {
      variants,
      rounds,
      label: ({ name }) => name,
      async measure(mode): Promise<Sample> {
        for (const [name, value] of Object.entries({ ...UNLIMITED, ...mode.settings })) {
          await redis.config('SET', name, value)
        }
        return await watchMemory(redis, signal, () => mode.run(work))
      },
      describe: ({ peakBytes, baseBytes }) =>
        `${figure((peakBytes - baseBytes) / MEGABYTE)} MB added`,
    })
    return {
      tables: [table(variants, taken)],
      conclusions: conclusions(variants, taken),
      documents: [],
      data: {
        samples: taken.map(({ variant, round, sample }) => ({
          ...{
            id: variant.id,
            mode: variant.name,
            round,
            settings: { ...UNLIMITED, ...variant.settings },
          },
          ...sample,
        })),
      },
    }
  },
}
