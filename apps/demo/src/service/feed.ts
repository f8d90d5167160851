import { randomBytes } from 'node:crypto'
import type { Done, RaceEvent, RaceInput, RaceLimits, Started } from '../events.ts'

type Listener = (event: RaceEvent) => void

/** The events of the races. A listener that joins during a race first gets the earlier events of that race. */
export class RaceFeed {
  readonly #listeners = new Set<Listener>()
  /** Events of the running race. */
  #events: RaceEvent[] = []
  #race: Started | null = null
  #last: Done | null = null

  get running(): boolean {
    return this.#race !== null
  }

  /** Number of listeners. */
  get listeners(): number {
    return this.#listeners.size
  }

  /** Announces a race. `running` is true from now on. */
  start(input: RaceInput, { rounds, turnSeconds }: RaceLimits): Started {
    const id = `${Date.now().toString(36)}-${randomBytes(5).toString('hex')}`
    const started = { id, ...input, rounds, turnSeconds }
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

  /** Calls `listener` with the state, the events of the running race, and then each new event. */
  subscribe(listener: Listener): () => void {
    const state = { running: this.running, race: this.#race, last: this.#last }
    listener({ name: 'state', data: state })
    for (const event of this.#events) listener(event)
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
