import { expect, test } from 'vitest'
import { commandStats, parseInfo } from '../src/index.ts'

test('parses the fields of INFO, without its headings', () => {
  const reply = '# Server\r\nredis_version:8.0.6\r\nconfig_file:/etc:1\r\n\r\n# Empty\r\nname:\r\n'
  expect([...parseInfo(reply)]).toEqual([
    ['redis_version', '8.0.6'],
    ['config_file', '/etc:1'],
    ['name', ''],
  ])
})

test('commandStats returns calls and execution time of each command', () => {
  const reply =
    '# Commandstats\r\ncmdstat_get:calls=3,usec=12,usec_per_call=4.00,rejected_calls=0,failed_calls=0\r\ncmdstat_client|list:calls=1,usec=7,usec_per_call=7.00\r\n# Keyspace\r\ndb0:keys=1,expires=0\r\n'
  expect([...commandStats(parseInfo(reply))]).toEqual([
    ['get', { calls: 3, micros: 12 }],
    ['client|list', { calls: 1, micros: 7 }],
  ])
})
