// HTML as text, escaped where it comes together: what is no `Html` itself is text.

/** Text that is HTML already. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | null | readonly Content[]

/** A template whose values are escaped; lists are joined, null is nothing. */
export function html(parts: TemplateStringsArray, ...values: Content[]): Html {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) text += render(value) + (parts[index + 1] ?? '')
  return new Html(text)
}

function render(content: Content): string {
  if (content === null) return ''
  if (content instanceof Html) return content.text
  if (typeof content === 'object') return content.map(render).join('')
  return escapeText(String(content))
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text as it may stand between tags, and in an attribute's quotes. */
function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)
}

/** JSON as it may stand in a `script` element: nothing in it can end the element, or begin a comment. */
export function escapeJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', String.raw`\u003c`))
}
