import { onTestFinished } from 'vitest'
import type { RaceEvent } from '../../src/events.ts'

/** The events in a stream of Server-Sent Events. */
export async function* raceEvents(stream: AsyncIterable<string>): AsyncGenerator<RaceEvent> {
  let text = ''
  for await (const chunk of stream) {
    const parts = `${text}${chunk}`.split('\n\n')
    text = parts.pop() ?? ''
    for (const part of parts) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? []
      if (name && data) yield { name, data: JSON.parse(data) } as RaceEvent
    }
  }
}

/** Collects the events of races from now on, until the current test ends. */
export async function listenToRaces(url: string): Promise<readonly RaceEvent[]> {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const events: RaceEvent[] = []
  const { body } = await fetch(`${url}/demo/race/events`, { signal: over.signal })
  const read = async () => {
    if (!body) return
    const stream = body.pipeThrough(new TextDecoderStream())
    for await (const event of raceEvents(stream)) events.push(event)
  }
  read().catch(() => {}) // the test or the API has ended
  return events
}
