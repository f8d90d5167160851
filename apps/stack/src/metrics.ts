/** One line of the Prometheus text format. */
export interface Metric {
  name: string
  labels: Record<string, string>
  value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Parses the values in the Prometheus text format; ignores types and help. */
export function parseMetrics(text: string): Metric[] {
  return text.split('\n').flatMap((line) => {
    const [match, name = '', quoted = '', value = ''] = LINE.exec(line) ?? []
    if (!match) return []
    const labels = Array.from(quoted.matchAll(LABEL), ([, key = '', escaped = '']) => [
      key,
      escaped.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char)),
    ])
    return [
      { name, labels: Object.fromEntries(labels), value: Number(value.replace('Inf', 'Infinity')) },
    ]
  })
}
