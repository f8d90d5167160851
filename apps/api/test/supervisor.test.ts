import cluster from 'node:cluster'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startWorkers } from '../src/workers/supervise.ts'

// The system fails to start a process in a folder that does not exist, as it does beyond a limit of processes.
test('if no worker can be started, the start fails with the reason, and stopping ends at once', async () => {
  const { cwd } = cluster.settings
  cluster.setupPrimary({ cwd: '/nonexistent' })
  onTestFinished(() => cluster.setupPrimary({ cwd }))
  const workers = startWorkers({ count: 2, graceMs: 60_000, log: pino({ enabled: false }) })
  await expect(workers.started).rejects.toThrow('worker could not be started: spawn')
  await workers.stop()
})
