import { onTestFinished } from 'vitest'
import type { RaceEvent } from '../../src/events.ts'

export interface RaceListener {
  /** Events of races since the start of listening. */
  readonly events: readonly RaceEvent[]
}

/** Listens to the events of races until the current test ends. */
export async function listenToRaces(url: string): Promise<RaceListener> {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const events: RaceEvent[] = []
  const { body } = await fetch(`${url}/demo/race/events`, { signal: over.signal })
  const read = async () => {
    let text = ''
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const parts = `${text}${chunk}`.split('\n\n')
      text = parts.pop() ?? ''
      for (const part of parts) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? []
        if (name && data) events.push({ name, data: JSON.parse(data) } as RaceEvent)
      }
    }
  }
  read().catch(() => {}) // the test or the API has ended
  return { events }
}
