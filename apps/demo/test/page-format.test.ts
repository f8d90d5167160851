import { expect, test } from 'vitest'
import { ago, duration, figure, sentence, size, uptime } from '../page/scripts/format.js'

test.each([
  [figure, 31_809.4, '31,809'],
  [figure, 12.41, '12.4'],
  [figure, 0, '0'],
  [duration, 312.4, '312 µs'],
  [duration, 999.6, '1 ms'],
  [duration, 1_934, '1.93 ms'],
  [duration, 999_600, '1 s'],
  [ago, 4_999, 'just now'],
  [ago, 59_999, '59 s ago'],
  [ago, 7_200_000, '2 h ago'],
  [ago, 86_400_000, '1 day ago'],
  [uptime, 4_012, '1 h 6 min'],
  [uptime, 93_600, '1 day 2 h'],
  [size, 1_523_412, '1.52 MB'],
  [size, 999_600, '1 MB'],
] as const)('%o: %d is %s', (format, value, text) => {
  expect(format(value)).toBe(text)
})

test.each([
  ['body/user must have no control characters', 'User must have no control characters.'],
  ["body must have required property 'user'", "Body must have required property 'user'."],
  ['Sold out!', 'Sold out!'],
])('"%s" is shown as "%s"', (message, shown) => {
  expect(sentence(message)).toBe(shown)
})
