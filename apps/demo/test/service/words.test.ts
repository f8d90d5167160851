import { expect, test } from 'vitest'
import { commandText, reader, replyText } from '../../src/service/words.ts'

const resp = (...words: string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`

const commands = (text: string) => reader(commandText)(Buffer.from(text))
const replies = (text: string) => reader(replyText)(Buffer.from(text))

test('decodes commands from chunks of any size', () => {
  const text = resp('ZADD', 'recent:', '1') + resp('hget', 'login:', '')
  for (let cut = 0; cut <= text.length; cut++) {
    const read = reader(commandText)
    const lines = [...read(Buffer.from(text.slice(0, cut))), ...read(Buffer.from(text.slice(cut)))]
    expect(lines).toEqual(['ZADD recent: 1', 'HGET login: ""'])
  }
})

test.each([
  [['AUTH', 'secret'], 'AUTH ***'],
  [['auth', 'api', 'secret'], 'AUTH api ***'],
  [['hello', '3', 'AUTH', 'api', 'secret', 'SETNAME', 'x'], 'HELLO 3 AUTH api *** SETNAME x'],
  [['EVAL', 'x'.repeat(2_000)], `EVAL ${'x'.repeat(40)}… (2,000 bytes)`],
])('hides passwords and cuts long values: %j', (words, line) => {
  expect(commands(resp(...words))).toEqual([line])
})

test('formats replies of RESP2 and RESP3', () => {
  const info = '# Server\r\nredis_version:8.0.6\r\n'
  const simple = '+OK\r\n:7\r\n$-1\r\n_\r\n$3\r\nada\r\n,1.5\r\n-NOAUTH sorry\r\n'
  const nested = '*2\r\n:1\r\n$1\r\na\r\n%1\r\n+server\r\n+redis\r\n'
  expect(replies(`${simple}${nested}=${info.length + 4}\r\ntxt:${info}\r\n`)).toEqual([
    ...['OK', ':7', '(nil)', '(nil)', 'ada', '1.5', '-NOAUTH sorry'],
    ...['[:1, a]', '[1 fields]', '# Server… (31 bytes)'],
  ])
})
