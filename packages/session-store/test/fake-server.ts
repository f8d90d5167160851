import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server that replies to each command with what `reply` returns; to nothing if it returns undefined. */
export async function fakeServer(reply: (command: string) => string | undefined) {
  const sockets = new Set<Socket>()
  const fake = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const command of text.split(/\*\d+\r\n/).slice(1)) {
        const words = command.split('\r\n').filter((word) => !/^(\$\d+|)$/.test(word))
        socket.write(reply(words.join(' ').toLowerCase()) ?? '')
      }
    })
  })
  await once(fake.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await fake[Symbol.asyncDispose]()
  })
  return { port: (fake.address() as AddressInfo).port, sockets }
}

export const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
