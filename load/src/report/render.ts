/** A result as it was saved, and what to call it. */
export interface NamedDocument {
  /** Of the file. */
  name: string
  document: unknown
}

/** One page that needs nothing else. */
export async function renderHtml(documents: readonly NamedDocument[]): Promise<string> {
  const text = documents.map(({ document }) => JSON.stringify(document, null, 2)).join('\n')
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<!doctype html><meta charset="utf-8"><title>Onetrip</title><pre>${escaped}</pre>\n`
}

export function renderMarkdown(documents: readonly NamedDocument[]): string {
  const blocks = documents.map(({ document }) => JSON.stringify(document, null, 2))
  return blocks.map((block) => `\`\`\`json\n${block}\n\`\`\`\n`).join('\n')
}
