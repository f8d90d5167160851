import { renderPage } from './page.ts'
import { type NamedDocument, noticesOf, partsOf } from './read.ts'

export { renderMarkdown } from './markdown.ts'

/**
 * One page with everything that the documents have, which needs nothing else.
 *
 * @throws Problem when one of them is in none of our formats.
 */
export async function renderHtml(documents: readonly NamedDocument[]): Promise<string> {
  const parts = documents.flatMap(partsOf)
  // A library of two megabytes, which no measurement has to wait for.
  const { drawChart } = await import('./charts/draw.ts')
  return renderPage(parts, documents.flatMap(noticesOf), drawChart)
}
