/** HTML, escaped where it comes together: what is no `Html` itself is text. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | null | readonly Content[]

/** A template whose values are escaped; lists are joined, null is nothing. */
export const html = (parts: TemplateStringsArray, ...values: Content[]): Html =>
  new Html(String.raw({ raw: parts }, ...values.map(render)))

function render(content: Content): string {
  if (content === null) return ''
  if (content instanceof Html) return content.text
  if (typeof content === 'object') return content.map(render).join('')
  return String(content).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
