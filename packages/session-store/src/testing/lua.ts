/**
 * Runs the Lua scripts of the store without Redis, by translating them to JavaScript. Only what the store's scripts
 * use: no `while`, no `pairs`, no patterns of strings; a function returns one value, except `unpack`. In translated
 * code, names of Lua begin with `$`, so any other name is a ReferenceError.
 */

/** A table of Lua. Nil is undefined. */
export class Table extends Map<unknown, unknown> {
  static of(items: readonly unknown[]): Table {
    return new Table(items.map((item, index) => [index + 1, item]))
  }

  static withNames(named: Record<string, unknown>): Table {
    return new Table(Object.entries(named))
  }

  get length(): number {
    let last = this.size
    while (last > 0 && !this.has(last)) last--
    return last
  }

  list(from = 1, to = this.length): unknown[] {
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => this.get(from + index))
  }
}

const isTrue = (value: unknown): boolean => value !== undefined && value !== false

const toNumber = (value: unknown): number | undefined => {
  const isText = typeof value === 'string' && value !== ''
  const number = isText ? Number(value) : value
  return typeof number === 'number' && !Number.isNaN(number) ? number : undefined
}

/** What translated code calls. */
const operators = {
  Table,
  isTrue,
  and: (left: unknown, right: () => unknown) => (isTrue(left) ? right() : left),
  or: (left: unknown, right: () => unknown) => (isTrue(left) ? left : right()),
  /** The operand of an arithmetic operator. */
  number(value: unknown): number {
    const number = toNumber(value)
    if (number === undefined) throw new TypeError(`arithmetic on ${value}`)
    return number
  },
  /** An element of a table, to read or to assign. */
  at: (table: Table, key: unknown) => ({
    get value() {
      return table.get(key)
    },
    set value(value) {
      if (value === undefined) table.delete(key)
      else table.set(key, value)
    },
  }),
  assign(places: { value: unknown }[], values: unknown[]): void {
    places.forEach((place, index) => {
      place.value = values[index]
    })
  },
  *range(from: number, to: number, step = 1) {
    for (let at = from; at <= to; at += step) yield at
  },
}

const functions = {
  cjson: Table.withNames({
    decode: (text: string) =>
      JSON.parse(text, (_, value: unknown) => {
        if (typeof value !== 'object' || value === null) return value
        return Array.isArray(value) ? Table.of(value) : new Table(Object.entries(value))
      }),
  }),
  ipairs: (table: Table) => table.list().map((item, index) => [index + 1, item]),
  tonumber: toNumber,
  type: (value: unknown) => (value instanceof Table ? 'table' : typeof value),
  unpack: (table: Table, from?: number, to?: number) => table.list(from, to),
  math: Table.withNames({ floor: Math.floor, max: Math.max, min: Math.min }),
  string: Table.withNames({
    format(form: string, value: number) {
      if (form !== '%.0f') throw new TypeError(`string.format('${form}')`)
      return operators.number(value).toFixed(0)
    },
    sub(text: string, from: number, to = -1) {
      if (from === 0 || to !== -1) throw new TypeError('string.sub')
      return text.slice(from > 0 ? from - 1 : from)
    },
  }),
}

const TOKENS =
  /\s+|--.*|(?<token>[A-Za-z_]\w*|\d+(?:\.\d+)?|'(?:[^'\\\n]|\\0)*'|"[^"\\\n]*"|\.\.\.|\.\.|[=~<>]=|.)/gy

/** Binary operators, from weak to strong. */
const LEVELS = [
  ['or'],
  ['and'],
  ['==', '~=', '<', '>', '<=', '>='],
  ['..'],
  ['+', '-'],
  ['*', '/', '%'],
]

/** The body of a JavaScript function. */
function translate(script: string): string {
  const tokens = [...script.matchAll(TOKENS)].flatMap(({ groups }) => groups?.token ?? [])
  let place = 0

  const peek = () => tokens[place] ?? ''
  const next = () => tokens[place++] ?? ''
  const accept = (token: string) => peek() === token && next() === token
  function expect(token: string): void {
    if (!accept(token)) throw new SyntaxError(`'${peek()}' instead of '${token}'`)
  }
  const name = () => (accept('...') ? '...$rest' : `$${next()}`)
  function listOf(item: () => string): string[] {
    const items = [item()]
    while (accept(',')) items.push(item())
    return items
  }
  /** A list that may be empty, and the token after it. */
  function listUntil(end: string, item: () => string): string[] {
    if (accept(end)) return []
    const items = listOf(item)
    expect(end)
    return items
  }

  function block(...ends: string[]): string {
    let code = ''
    while (place < tokens.length && !ends.includes(peek())) code += `${statement()};`
    return `{${code}}`
  }
  function blockToEnd(): string {
    const code = block('end')
    expect('end')
    return code
  }

  function statement(): string {
    if (accept('if')) return conditional()
    if (accept('for')) return loop()
    if (accept('return')) {
      return /^(?:|end|else|elseif)$/.test(peek()) ? 'return' : `return ${expression()}`
    }
    if (accept('local')) {
      if (accept('function')) {
        const own = name()
        expect('(')
        return `const ${own} = (${listUntil(')', name)}) => ${blockToEnd()}`
      }
      return `let [${listOf(name)}] = [${accept('=') ? listOf(expression) : ''}]`
    }
    const targets = listOf(suffixed)
    if (!accept('=')) return targets.join()
    const places = targets.map((target) =>
      target.endsWith('.value') ? target.slice(0, -6) : `{ set value(v) { ${target} = v } }`,
    )
    return `assign([${places}], [${listOf(expression)}])`
  }

  function conditional(): string {
    const condition = expression()
    expect('then')
    const code = `if (isTrue(${condition})) ${block('elseif', 'else', 'end')}`
    if (accept('elseif')) return `${code} else ${conditional()}`
    if (accept('else')) return `${code} else ${blockToEnd()}`
    expect('end')
    return code
  }

  function loop(): string {
    const names = listOf(name)
    const isRange = accept('=')
    if (!isRange) expect('in')
    const values = listOf(expression)
    expect('do')
    const head = isRange ? `${names} of range(${values})` : `[${names}] of ${values}`
    return `for (let ${head}) ${blockToEnd()}`
  }

  function expression(level = 0): string {
    const signs = LEVELS[level]
    if (!signs) return unary()
    let code = expression(level + 1)
    while (signs.includes(peek())) code = binary(next(), code, expression(level + 1))
    return code
  }

  function binary(sign: string, left: string, right: string): string {
    if (sign === 'and' || sign === 'or') return `${sign}(${left}, () => ${right})`
    if (sign === '..') return `\`\${${left}}\${${right}}\``
    if (sign === '==') return `(${left} === ${right})`
    if (sign === '~=') return `(${left} !== ${right})`
    if (/[<>]/.test(sign)) return `(${left} ${sign} ${right})`
    return `(number(${left}) ${sign} number(${right}))`
  }

  function unary(): string {
    if (accept('not')) return `!isTrue(${unary()})`
    if (accept('#')) return `${unary()}.length`
    if (accept('-')) return `-number(${unary()})`
    if (accept('nil')) return 'undefined'
    if (accept('{')) return `Table.of([${listUntil('}', expression)}])`
    return /^(?:['"\d]|true$|false$)/.test(peek()) ? next() : suffixed()
  }

  function suffixed(): string {
    let code = ''
    if (accept('(')) {
      code = `(${expression()})`
      expect(')')
    } else code = name()
    for (;;) {
      if (accept('.')) code = `at(${code}, '${next()}').value`
      else if (accept('[')) {
        code = `at(${code}, ${expression()}).value`
        expect(']')
      } else if (accept(':')) {
        const method = `at($string, '${next()}').value`
        expect('(')
        code = `${method}(${[code, ...listUntil(')', expression)]})`
      } else if (accept('(')) {
        const spread = code === '$unpack' ? '...' : ''
        code = `${spread}${code}(${listUntil(')', expression)})`
      } else return code
    }
  }

  return block()
}

const translated = new Map<string, (...args: unknown[]) => unknown>()

/** Runs a script. `globals` are KEYS, ARGV and redis. */
export function runLua(script: string, globals: Record<string, unknown>): unknown {
  const known = { ...functions, ...globals }
  let run = translated.get(script)
  if (!run) {
    const names = Object.keys(known).map((name) => `$${name}`)
    const code = `'use strict'; ${translate(script.replace(/^#!.*/, ''))}`
    run = new Function(...Object.keys(operators), ...names, code) as (...args: unknown[]) => unknown
    translated.set(script, run)
  }
  return run(...Object.values(operators), ...Object.values(known))
}
