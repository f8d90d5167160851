import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '@onetrip/stack/program.ts'

/** What the page is shown with. */
export interface View {
  width: number
  theme?: 'light' | 'dark'
}

export interface Browser {
  /** Opens a page of its own, without a network. */
  open(url: string, view: View): Promise<Page>
  close(): Promise<void>
}

interface Page {
  /** The value of an expression, which may be a promise, in the page. */
  evaluate<Value>(expression: string): Promise<Value>
  /** Everything that the page complained of or asked the network for, since it was opened. */
  readonly complaints: readonly string[]
}

/** Chromium's own protocol over its debugging port, as far as these tests need it. */
export async function startBrowser(command = 'chromium'): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'onetrip-browser-'))
  let endpoint = ''
  const program = await startProgram({
    name: 'chromium',
    command,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'],
      ...['--disable-background-networking', '--no-first-run', `--user-data-dir=${profile}`],
      'about:blank',
    ],
    ready: /^DevTools listening on /,
    onLine(line) {
      const match = /^DevTools listening on (ws:.*)$/.exec(line)
      if (match?.[1]) endpoint = match[1]
    },
  })
  const connection = await connect(endpoint)
  return {
    open: (url, view) => openPage(connection, url, view),
    async close() {
      connection.close()
      await program.stop()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface Message {
  id?: number
  sessionId?: string
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { message: string }
}

interface Connection {
  send(method: string, params?: object, sessionId?: string): Promise<Record<string, unknown>>
  onEvent(listener: (message: Message) => void): void
  close(): void
}

async function connect(endpoint: string): Promise<Connection> {
  const socket = new WebSocket(endpoint)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  const listeners: ((message: Message) => void)[] = []
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    if (message.id === undefined) for (const listener of listeners) listener(message)
    else if (message.error) waiting.get(message.id)?.reject(new Error(message.error.message))
    else waiting.get(message.id)?.resolve(message.result ?? {})
  })
  let last = 0
  return {
    send(method, params = {}, sessionId) {
      const id = ++last
      const answer = Promise.withResolvers<Record<string, unknown>>()
      waiting.set(id, answer)
      socket.send(JSON.stringify({ id, method, params, sessionId }))
      return answer.promise
    },
    onEvent: (listener) => listeners.push(listener),
    close: () => socket.close(),
  }
}

async function openPage(connection: Connection, url: string, view: View): Promise<Page> {
  const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true })
  const send = (method: string, params?: object) =>
    connection.send(method, params, String(sessionId))
  const complaints: string[] = []
  const loaded = Promise.withResolvers<void>()
  connection.onEvent(({ method, params, sessionId: session }) => {
    if (session !== sessionId) return
    if (method === 'Page.loadEventFired') loaded.resolve()
    if (method === 'Log.entryAdded' || method === 'Runtime.exceptionThrown') {
      complaints.push(JSON.stringify(params))
    }
    if (method === 'Network.requestWillBeSent') {
      const { url: wanted } = (params as { request: { url: string } }).request
      if (wanted !== url && !wanted.startsWith('blob:')) complaints.push(`asked for ${wanted}`)
    }
  })
  for (const domain of ['Page', 'Log', 'Runtime', 'Network']) await send(`${domain}.enable`)
  const size = { width: view.width, height: 900, deviceScaleFactor: 1, mobile: view.width < 600 }
  await send('Emulation.setDeviceMetricsOverride', size)
  const features = [{ name: 'prefers-color-scheme', value: view.theme ?? 'light' }]
  await send('Emulation.setEmulatedMedia', { features })
  await send('Page.navigate', { url })
  await loaded.promise
  return {
    complaints,
    async evaluate<Value>(expression: string) {
      const answer = await send('Runtime.evaluate', {
        ...{ expression, awaitPromise: true, returnByValue: true, userGesture: true },
      })
      if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails))
      return (answer.result as { value: Value }).value
    },
  }
}
