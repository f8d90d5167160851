import { expect, test } from 'vitest'
import { evenRange, parseView, SLOTS } from '../../src/cluster/view.ts'

const reply = `
a1 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-99 200 [201->-b2]
b2 172.18.0.3:6379@16379,redis-2 slave,fail a1 1795325841918 1795325840000 1 disconnected
c3 ::1:7003@17003 master - 0 1795325840000 3 connected 300-16383
d4 :0@0 handshake - 0 0 0 disconnected
`

test('parses the view of a node', () => {
  const { self, nodes } = parseView(reply)
  expect(self).toEqual({
    id: 'a1',
    host: '127.0.0.1',
    port: 7001,
    epoch: 1,
    connected: true,
    primary: null,
    flags: ['myself', 'master'],
    slots: [
      [0, 99],
      [200, 200],
    ],
  })
  expect(nodes.get('b2')).toMatchObject({
    host: '172.18.0.3',
    port: 6379,
    primary: 'a1',
    connected: false,
    slots: [],
    flags: ['slave', 'fail'],
  })
  expect(nodes.get('c3')).toMatchObject({ host: '::1', port: 7003 })
  expect([...nodes.keys()]).toEqual(['a1', 'b2', 'c3', 'd4'])
})

test('a reply without the node itself is an error', () => {
  expect(() => parseView('c3 ::1:7003@17003 master - 0 0 3 connected\n')).toThrow('does not name')
})

test.each([1, 2, 3, 5, 7])('%i primaries share all slots, each slot once', (primaries) => {
  const ranges = Array.from({ length: primaries }, (_, index) => evenRange(index, primaries))
  expect(ranges[0]?.[0]).toBe(0)
  expect(ranges.at(-1)?.[1]).toBe(SLOTS - 1)
  for (const [index, [from]] of ranges.entries()) {
    if (index > 0) expect(from).toBe((ranges[index - 1]?.[1] ?? 0) + 1)
  }
})
