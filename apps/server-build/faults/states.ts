import { open, type Peer } from './peer.ts'

/** Opens a connection and brings it into the state in which it will be cut. */
export type State = (port: number) => Promise<Peer>

async function after(port: number, commands: string, reply: RegExp): Promise<Peer> {
  const peer = await open(port)
  peer.write(commands)
  await peer.until(reply)
  return peer
}

async function sent(port: number, commands: string): Promise<Peer> {
  const peer = await open(port)
  peer.write(commands)
  return peer
}

/** The states of a client, by name. */
export const states: Readonly<Record<string, State>> = {
  'just connected': open,
  'after half a command': (port) => sent(port, '*2\r\n$3\r\nGET\r\n$3\r\nk'),
  'with a command in flight': (port) => sent(port, 'PING\r\n'),
  'with many commands in flight': (port) => sent(port, 'INCR counter\r\n'.repeat(2_000)),
  'after a protocol error': (port) => sent(port, '*1\r\n$-5\r\nxx\r\n'),
  'after a reply': (port) => after(port, 'PING\r\n', /PONG/),
  'with large unread replies': async (port) => {
    const peer = await open(port)
    peer.socket.pause()
    peer.write('GET large\r\n'.repeat(20))
    return peer
  },
  'in the middle of a large argument': (port) =>
    sent(port, `*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1000000\r\n${'x'.repeat(300_000)}`),
  'in a transaction, watching': (port) =>
    after(port, 'WATCH counter\r\nMULTI\r\nINCR counter\r\n', /QUEUED/),
  blocked: (port) => after(port, 'PING\r\nBLPOP nothing 0\r\n', /PONG/),
  'waiting for replicas': (port) => after(port, 'SET w 1\r\nWAIT 1 0\r\n', /OK/),
  subscribed: (port) => after(port, 'SUBSCRIBE a b\r\nPSUBSCRIBE c*\r\n', /:3\r\n/),
  tracking: (port) => after(port, 'HELLO 3\r\nCLIENT TRACKING on\r\nGET counter\r\n', /\+OK/),
  monitoring: (port) => after(port, 'MONITOR\r\n', /OK/),
  'closing after its reply': (port) => sent(port, 'PING\r\nQUIT\r\n'),
  'killing itself': (port) => sent(port, 'CLIENT KILL TYPE normal SKIPME no\r\nPING\r\n'),
  'that acts as a replica': (port) => sent(port, 'REPLCONF capa eof\r\nPSYNC ? -1\r\n'),
}

/** Ends a connection: `reset` sends RST, `end` sends FIN, `both` sends FIN, then RST. */
export function cut({ socket }: Peer, how: 'reset' | 'end' | 'both'): void {
  if (how === 'reset') socket.resetAndDestroy()
  else if (how === 'end') socket.resume().end()
  else socket.end(() => socket.resetAndDestroy())
}
