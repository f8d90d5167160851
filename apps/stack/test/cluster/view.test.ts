import { expect, test } from 'vitest'
import { parseView } from '../../src/cluster/view.ts'

const reply = `
a1 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-99 200 [201->-b2]
b2 172.18.0.3:6379@16379,redis-2 slave,fail a1 1795325841918 1795325840000 1 disconnected
c3 ::1:7003@17003 master - 0 1795325840000 3 connected 300-16383
d4 :0@0 handshake - 0 0 0 disconnected
`

test('parses ranges of slots, migrating slots, names of hosts, and IPv6 addresses', () => {
  const { self, nodes } = parseView(reply)
  expect(self).toMatchObject({ id: 'a1', epoch: 1, primary: null })
  expect(JSON.stringify(self.slots)).toBe('[[0,99],[200,200]]')
  const [host, port] = ['172.18.0.3', 6379]
  expect(nodes.get('b2')).toMatchObject({ host, port, primary: 'a1', connected: false, slots: [] })
  expect(nodes.get('c3')).toMatchObject({ host: '::1', port: 7003 })
  expect([...nodes.keys()]).toEqual(['a1', 'b2', 'c3', 'd4'])
})
