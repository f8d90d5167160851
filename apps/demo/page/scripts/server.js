import { call } from './api.js'
import { byId, setText } from './dom.js'
import { figure, size, uptime } from './format.js'
import { poll } from './poll.js'

const EVERY_MS = 3_000

/** Text by element id, from the response of `GET /demo/server`. @type {Record<string, (server: any) => string>} */
const facts = {
  'server-nodes': ({ topology, nodes, unavailable }) => {
    if (topology === 'single') return 'one server'
    if (topology === 'sentinel') return `${nodes[0]}, primary by Redis Sentinel`
    const down = unavailable.length > 0 ? `, no answer from ${unavailable.join(', ')}` : ''
    return `cluster, ${figure(nodes.length)} primaries${down}`
  },
  'server-build': ({ build, version }) => `${version}, ${build ?? 'not built by Onetrip'}`,
  'server-patches': ({ patches }) => patches?.join('\n') ?? 'unknown',
  'server-threads': ({ ioThreads }) => (ioThreads > 1 ? figure(ioThreads) : 'off'),
  'server-clients': ({ connectedClients }) => figure(connectedClients),
  'server-commands': ({ commandsPerSecond }) => figure(commandsPerSecond),
  'server-connections': ({ totalConnectionsReceived }) => figure(totalConnectionsReceived),
  'server-memory': ({ usedMemory }) => size(usedMemory),
  'server-uptime': ({ uptimeSeconds }) => uptime(uptimeSeconds),
}

/** Shows data about the Redis server. */
export function startServer() {
  const panel = byId('server-facts', HTMLElement)
  poll(async () => {
    try {
      const server = await call('GET', '/demo/server')
      for (const [id, textOf] of Object.entries(facts)) {
        setText(byId(id, HTMLElement), textOf(server))
      }
      panel.classList.remove('stale')
    } catch (error) {
      panel.classList.add('stale')
      throw error
    }
  }, EVERY_MS)
}
