import { once } from 'node:events'
import { urlFor } from '@onetrip/stack/address.ts'
import { listenForInterrupts } from '@onetrip/stack/interrupt.ts'
import { newSecret, places } from '@onetrip/stack/places.ts'
import { describeError } from '@onetrip/stack/problem.ts'
import { print, printError, surviveClosedOutput } from '@onetrip/stack/terminal.ts'
import { openDemoService } from './service.ts'

// The demo service as a program. The stack starts it (apps/stack/src/demo-service.ts), with URLs that contain the
// passwords. In docker-compose.yml, REDIS_SECRETS is the folder of the passwords, and OWN_HOST the
// host of Redis.

const { signal, interrupt } = listenForInterrupts(() => {}, 1)
surviveClosedOutput(() => interrupt('the output was closed'))
try {
  const {
    DEMO_SOCKET: socket = '',
    REDIS_URL: url = '',
    MONITOR_URLS: monitorUrls = '',
    REDIS_SECRETS: secrets,
  } = process.env
  const service = await openDemoService({
    socket,
    redis: urlFor('api', url, secrets),
    monitorUrls: secrets ? [urlFor('operator', url, secrets)] : monitorUrls.split(' '),
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
