import { expect, test } from 'vitest'
import { runLua, Table } from '../../src/testing/lua.ts'

const run = (script: string) =>
  runLua(script, { KEYS: Table.of([]), ARGV: Table.of(['a', '2', '']), redis: new Table() })

test.each<[string, unknown]>([
  ['return 1 + 2 * 3 - 4 / 2', 5],
  ["return '2' * '3'", 6],
  ["return 1 .. 'a' .. 2", '1a2'],
  ['return -ARGV[2] + 1', -1],
  ['return #ARGV', 3],
  ["return ARGV[3] and 'empty text is true' or 'false'", 'empty text is true'],
  ["return 0 and 'zero is true'", 'zero is true'],
  ['return ARGV[4] or false', false],
  ['return not ARGV[4] == true', true],
  ["return 1 == '1'", false],
  ["return ARGV[1] ~= 'a'", false],
  ["return tonumber('x')", undefined],
  ["return tonumber('')", undefined],
  ['return tonumber(false)', undefined],
  ['return tonumber(ARGV[2]) >= 2', true],
  ['return type(ARGV)', 'table'],
  ["return string.format('%.0f', 2.0)", '2'],
  ["local text = 'abc' return text:sub(-1) .. text:sub(2)", 'cbc'],
  ['local a, b = 1, 2 a, b = b, a return a - b', 1],
  ['local list = {} list[#list + 1], list[#list + 2] = 1, 2 return #list', 2],
  ["local map = {} map['x'] = 1 map['x'] = nil return map['x'] == nil", true],
  ['local sum = 0 for i = 1, 5, 2 do sum = sum + i end return sum', 9],
  ['local sum = 0 for i = 1, 0 do sum = sum + i end return sum', 0],
  [
    "local text = '' for i, arg in ipairs(ARGV) do text = text .. i .. arg end return text",
    '1a223',
  ],
  ['local function last(...) return #{ ... } end return last(unpack(ARGV, 1, 2))', 2],
  ["if ARGV[4] then return 1 elseif ARGV[2] == '2' then return 2 else return 3 end", 2],
  ['local x = 1 -- a comment\nif x == 1 then local x = 2 end return x', 1],
  ['#!lua flags=allow-oom\nreturn math.min(2, math.floor(1.5))', 1],
  ['return', undefined],
])('%s', (script, result) => {
  expect(run(script)).toEqual(result)
})

test.each([
  ['return pairs(ARGV)', '$pairs is not defined'],
  ['repeat until true', '$repeat is not defined'],
  ['if true then return 1', "'' instead of 'end'"],
  ['x = 1', '$x is not defined'],
  ["return 'a' + 1", 'arithmetic on a'],
  ["return string.format('%d', 1)", "string.format('%d')"],
  ['return process', '$process is not defined'],
])('%s: is not supported', (script, message) => {
  expect(() => run(script)).toThrow(message)
})
