import { once } from 'node:events'
import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { newSecret, places } from '@onetrip/stack/places.ts'
import { describeError } from '@onetrip/stack/problem.ts'
import { print, printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { openDemoService } from './service.ts'

// The demo service as a program. The stack starts it (apps/stack/src/demo-service.ts).

const { signal, interrupt } = listenForInterrupts(() => {}, 1)
surviveClosedOutput(() => interrupt('the output was closed'))
try {
  const {
    DEMO_SOCKET: socket = '',
    REDIS_URL: redis = '',
    MONITOR_URLS: monitorUrls = '',
  } = process.env
  const service = await openDemoService({
    socket,
    redis,
    monitorUrls: monitorUrls.split(' '),
    sessionSecret: newSecret(),
    results: places().results,
    prepares: true,
  })
  print(`The demo service listens on ${socket}`)
  if (!signal.aborted) await once(signal, 'abort')
  await service.close()
} catch (error) {
  printError(describeError(error))
  process.exitCode = 1
}
