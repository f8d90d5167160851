import { expect, test } from 'vitest'
import { parseInfo } from '../src/index.ts'

test('parses the fields of INFO, without its headings', () => {
  const reply = '# Server\r\nredis_version:8.0.6\r\nconfig_file:/etc:1\r\n\r\n# Empty\r\nname:\r\n'
  expect([...parseInfo(reply)]).toEqual([
    ['redis_version', '8.0.6'],
    ['config_file', '/etc:1'],
    ['name', ''],
  ])
})
