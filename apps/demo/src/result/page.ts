import { readFileSync } from 'node:fs'
import { figure } from '../../page/scripts/format.js'
import type { Done } from '../events.ts'
import { conditionsOf, escaped, milliseconds } from './image.ts'

const template = readFileSync(new URL('page.html', import.meta.url), 'utf8')

/**
 * The page of a result, with its image.
 *
 * @param origin Of the request, such as `https://shop.example`: previews of links need absolute URLs.
 */
export function resultPage(result: Done, origin: string): string {
  const { id, lanes, ratio, sentence, disturbed, command } = result
  const names = `${lanes.at(-1)?.strategy} and ${lanes[0]?.strategy}`
  const rows = lanes.map(({ strategy, requestsPerSecond: rate, p50Ms, p99Ms }) => {
    const range = `${figure(rate.lowest)} to ${figure(rate.highest)}`
    const cells = [figure(rate.median), range, milliseconds(p50Ms), milliseconds(p99Ms)]
    return `<tr><th scope="row">${escaped(strategy)}</th><td>${cells.join('</td><td>')}</td></tr>`
  })
  const texts: Record<string, string> = {
    id,
    origin,
    sentence,
    title: ratio ? `× ${figure(ratio.median)}: ${names}` : names,
    conditions: conditionsOf(result),
    disturbed: disturbed ?? '',
    command: command ?? '',
  }
  return template.replaceAll(/\{\{(\w+)\}\}/g, (_, name) =>
    name === 'rows' ? rows.join('') : escaped(texts[name] ?? ''),
  )
}
