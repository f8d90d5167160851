/** One line of the Prometheus text format. */
export interface Metric {
  name: string
  labels: Record<string, string>
  value: number
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Reads the Prometheus text format, as far as values are concerned. */
export function parseMetrics(text: string): Metric[] {
  return text.split('\n').flatMap((line) => {
    const match = line.startsWith('#') ? null : LINE.exec(line)
    if (!match) return []
    const [, name = '', labels = '', value = ''] = match
    return [
      {
        name,
        labels: Object.fromEntries(
          Array.from(labels.matchAll(LABEL), ([, key = '', quoted = '']) => [
            key,
            quoted.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped)),
          ]),
        ),
        value: Number(value.replace('Inf', 'Infinity')),
      },
    ]
  })
}
