import { expect, test } from 'vitest'
import { instructionsOf } from '../src/drivers/redis/instructions.ts'

const counted = '     0.100127212;152368;;instructions;100064384;100.00;;'
const notCounted = '     0.204999417;<not counted>;;instructions;0;100.00;;'
const userModeOnly = '     0.100127212;113214;;instructions:u;100064384;100.00;;'

test.each([
  ['the intervals', [counted, counted], 304_736],
  ['intervals in which the thread waited', [counted, notCounted], 152_368],
  ['nothing if no interval was counted', [notCounted, notCounted], null],
  ['nothing if perf may count in user mode only', [userModeOnly, userModeOnly], null],
])('counts %s', (_, lines, instructions) => {
  expect(instructionsOf(lines)).toBe(instructions)
})
