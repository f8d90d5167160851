/** HTML that is already escaped. The template `html` escapes all other values. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Content = Html | string | number | null | readonly Content[]

/** A template that escapes its values and joins lists; null becomes an empty string. */
export const html = (parts: TemplateStringsArray, ...values: Content[]): Html =>
  new Html(String.raw({ raw: parts }, ...values.map(render)))

function render(content: Content): string {
  if (content === null) return ''
  if (content instanceof Html) return content.text
  if (typeof content === 'object') return content.map(render).join('')
  return String(content).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
