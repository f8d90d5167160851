import { randomUUID } from 'node:crypto'
import type { Done, RaceEvent, RaceInput, RaceLimits, Started } from './events.ts'

type Listener = (event: RaceEvent) => void

/** The events of the races. A listener that joins during a race gets its earlier events first. */
export class RaceFeed {
  readonly #listeners = new Set<Listener>()
  /** Of the race that runs. */
  #events: RaceEvent[] = []
  #race: Started | null = null
  #last: Done | null = null

  get running(): boolean {
    return this.#race !== null
  }

  /** How many listen. */
  get listeners(): number {
    return this.#listeners.size
  }

  /** Announces a race: from now on one is running. */
  start(input: RaceInput, { rounds, turnSeconds }: RaceLimits): Started {
    const started = { id: randomUUID(), ...input, rounds, turnSeconds }
    this.publish({ name: 'started', data: started })
    return started
  }

  publish(event: RaceEvent): void {
    this.#events.push(event)
    if (event.name === 'started') this.#race = event.data
    if (event.name === 'done') this.#last = event.data
    if (event.name === 'done' || event.name === 'failed') {
      this.#race = null
      this.#events = []
    }
    for (const listener of this.#listeners) listener(event)
  }

  /** Calls `listener` with the state, with the events of the race that runs, and then with each new event. */
  subscribe(listener: Listener): () => void {
    const state = { running: this.running, race: this.#race, last: this.#last }
    listener({ name: 'state', data: state })
    for (const event of this.#events) listener(event)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
