import { expect, test } from 'vitest'
import { resultText, tableText } from '../../src/reporting/terminal.ts'

const table = {
  caption: '',
  head: ['variant', 'link', ...Array.from({ length: 9 }, (_, index) => `figure ${index}`)],
  rows: [['naive', 'loopback', ...Array.from({ length: 9 }, (_, index) => `${index}.00`)]],
  texts: [0, 1],
}

test('a table that is wider than the terminal is continued below, with its columns of text', () => {
  const narrow = tableText(table, 80)
  expect(narrow.split('\n').every((line) => line.length <= 80)).toBe(true)
  expect(narrow.match(/^naive +loopback/gm)).toHaveLength(2)
  for (let index = 0; index < 9; index++) expect(narrow).toContain(` ${index}.00`)
  expect(tableText(table, Number.POSITIVE_INFINITY).match(/^naive/gm)).toHaveLength(1)
  expect(tableText({ ...table, texts: [0, 1, 2] }, 20).match(/^naive/gm)).toHaveLength(8)
})

test('notes and the last sentence are broken between words, in a terminal', () => {
  const texts = { notes: ['one note is of words'], conclusion: 'the sentence at the end' }
  const part = { sections: [], ending: [], ...texts } as never
  expect(resultText(part, 12)).toBe('one note is\nof words\n\nthe sentence\nat the end')
  expect(resultText(part)).toBe('one note is of words\n\nthe sentence at the end')
})
