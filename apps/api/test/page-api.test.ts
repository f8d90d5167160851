import { expect, test } from 'vitest'
import { sentence } from '../page/scripts/api.js'

test.each([
  ['body/user must have no control characters', 'User must have no control characters.'],
  ["body must have required property 'user'", "Body must have required property 'user'."],
  ['invalid credentials', 'Invalid credentials.'],
  ['Sold out!', 'Sold out!'],
])('"%s" is shown as "%s"', (message, shown) => {
  expect(sentence(message)).toBe(shown)
})
