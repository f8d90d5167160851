import { readFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import type { HttpResult } from '../http/result.ts'
import { partMarkdown, plain, tableMarkdown } from './markdown.ts'
import type { Part } from './model.ts'
import { outputFile } from './output-file.ts'
import { headlineTable, notesOf } from './parts/http-tables.ts'
import { noticesOf, partsOf, readDocument } from './read.ts'

// README.md has its figures between two comments, the first of which names the file that they are from;
// docs/results.md is made from the same file as a whole. A test compares both with it.

const README = 'README.md'
export const RESULTS = 'docs/results.md'

/** Of many variants, those that the argument is about; all are in docs/results.md. */
const TOLD = ['naive', 'naive-lean', 'connect-redis', 'node-redis', 'pipeline', 'batch', 'noop']

const BEGIN = /<!-- figures of (\S+), by npm run load -- report \S+ --readme -->\n/
const END = '<!-- end of the figures -->'

/**
 * Renews the README's figures and docs/results.md.
 *
 * @param path of a result with a comparison over HTTP, in the repository.
 * @returns the files that were written.
 * @throws Problem
 */
export async function renewRepository(path: string): Promise<string[]> {
  const source = relative(repository, resolve(path))
  if (source.startsWith('..')) throw new Problem(`${path} is not in this repository.`)
  const texts = await repositoryTexts(source)
  const files = await Promise.all(
    [...texts].map(async ([name, text]) => {
      const file = await outputFile('--readme:', join(repository, name))
      return { file, text }
    }),
  )
  for (const { file, text } of files) await file.save(text)
  return files.map(({ file }) => file.path)
}

/** What README.md and docs/results.md shall hold, by their names. */
export async function repositoryTexts(source: string): Promise<Map<string, string>> {
  const document = await readDocument(join(repository, source))
  const parts = partsOf(document)
  const readme = await readFile(join(repository, README), 'utf8')
  return new Map([
    [README, withFigures(readme, source, parts)],
    [RESULTS, resultsText(source, parts, noticesOf(document))],
  ])
}

/** The file that README.md says its figures are from. */
export async function sourceOfReadme(): Promise<string> {
  const [, source] = BEGIN.exec(await readFile(join(repository, README), 'utf8')) ?? []
  if (source === undefined) throw new Problem(`${README} has no comment that says "figures of …".`)
  return source
}

function withFigures(readme: string, source: string, parts: readonly Part[]): string {
  const begin = BEGIN.exec(readme)
  const end = readme.indexOf(END)
  if (!begin || end < begin.index) {
    throw new Problem(`${README} has no comments "figures of …" and "end of the figures".`)
  }
  const comment = `<!-- figures of ${source}, by npm run load -- report ${source} --readme -->`
  const figures = `${comment}\n\n${figuresText(source, parts)}\n\n`
  return readme.slice(0, begin.index) + figures + readme.slice(end)
}

function figuresText(source: string, parts: readonly Part[]): string {
  const part = parts.find(({ name }) => name === 'http')
  if (!part) {
    throw new Problem(`${source} has no comparison over HTTP, which the README's figures are of.`)
  }
  const result = part.document as HttpResult
  const some = result.summaries.filter(({ variant }) => TOLD.includes(variant))
  const told = some.length > 1 ? some : result.summaries
  return [
    wrap(circumstances(result, source)),
    tableMarkdown(headlineTable(told)),
    ...(told.length < result.summaries.length
      ? [`All ${result.summaries.length} variants are in \`${RESULTS}\`.`]
      : []),
    ...notesOf(told).map((note) => wrap(plain(note))),
  ].join('\n\n')
}

function circumstances(result: HttpResult, source: string): string {
  const { date, machine, redis, options, samples, generator } = result
  const errors = samples.some((sample) => Object.keys(sample.errors).length > 0)
  const rounds = Math.max(...samples.map(({ round }) => round))
  const reads =
    options.reads > 0 ? `, ${(options.reads * 100).toFixed(0)} % of the requests read` : ''
  const way = redis.transport === 'unix' ? 'a Unix socket' : 'loopback TCP'
  return (
    `On ${date.slice(0, 10)} (${machine.cpu}, ${machine.cores} cores, ${machine.kernel}, Node ${machine.node.slice(1)}, ` +
    `Redis ${redis.version} \`${redis.started}\` over ${way}, ${generator} with ${options.connections} connections${reads}; ` +
    `medians of ${rounds} interleaved rounds of ${options.duration} s${errors ? '' : ', no errors'}; all samples in \`${source}\`):`
  )
}

/** In lines of at most 105 characters, as the README has them. */
function wrap(text: string): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < 105)
      lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines.join('\n')
}

function resultsText(source: string, parts: readonly Part[], notices: readonly string[]): string {
  const contents = parts.map(({ title, headline }) =>
    headline[0] === undefined ? `- ${title}` : `- ${title}: ${headline[0]}`,
  )
  return `${[
    `<!-- Made from ${source} by npm run load -- report ${source} --readme. Do not edit. -->`,
    '# Results',
    `Every table of one run on one machine; every sample is in \`${source}\`, and \`npm run load -- report ${source} --html report.html\` makes a page of it, with charts. How it is measured is in \`docs/method.md\`.`,
    ...notices.map(plain),
    contents.join('\n'),
    ...parts.map(partMarkdown),
  ].join('\n\n')}\n`
}
