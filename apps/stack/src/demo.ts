import { once } from 'node:events'
import { targetOfSettings } from './address.ts'
import { openDemoService } from './demo/service.ts'
import { listenForInterrupts } from './interrupt.ts'
import { newSecret } from './places.ts'
import { describeError } from './problem.ts'
import { print, printError, surviveClosedOutput } from './terminal.ts'

// The demo service as a program. See demo/process.ts.

const { signal, interrupt } = listenForInterrupts(() => {}, 1)
surviveClosedOutput(() => interrupt('the output was closed'))
try {
  const { DEMO_SOCKET: socket = '', MONITOR_URLS: monitorUrls = '' } = process.env
  const service = await openDemoService({
    socket,
    redis: targetOfSettings(process.env),
    monitorUrls: monitorUrls.split(' '),
    sessionSecret: newSecret(),
  })
  print(`The demo service listens on ${socket}`)
  if (!signal.aborted) await once(signal, 'abort')
  await service.close()
} catch (error) {
  printError(describeError(error))
  process.exitCode = 1
}
