const WIDTH = 100

/**
 * A result as JSON to be kept: figures with six digits, and what fits into a line in one, so that a file
 * with every sample can be read, and compared by git.
 */
export function toJson(result: object): string {
  return `${laidOut(JSON.parse(JSON.stringify(result, sixDigits)), '')}\n`
}

/** Keeps of a figure what is worth keeping. */
function sixDigits(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value)
    ? Number(value.toPrecision(6))
    : value
}

function laidOut(value: unknown, indent: string): string {
  const line = inOneLine(value)
  if (indent.length + line.length <= WIDTH || !isComposed(value)) return line
  const inner = `${indent}  `
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const lines = members(value, (member) => laidOut(member, inner))
  return `${open}\n${lines.map((text) => inner + text).join(',\n')}\n${indent}${close}`
}

function inOneLine(value: unknown): string {
  if (!isComposed(value)) return JSON.stringify(value)
  const text = members(value, inOneLine).join(', ')
  if (Array.isArray(value)) return `[${text}]`
  return text === '' ? '{}' : `{ ${text} }`
}

const isComposed = (value: unknown): value is object => typeof value === 'object' && value !== null

function members(value: object, text: (member: unknown) => string): string[] {
  if (Array.isArray(value)) return value.map(text)
  return Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${text(member)}`)
}
