import { setTimeout as delay } from 'node:timers/promises'

interface Answer {
  status: number
  body: Record<string, unknown>
}

/** A user of the API at a URL. */
export class Client {
  readonly #url: string
  readonly #token: string

  private constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** @throws Error unless it succeeds. */
  static async logIn(url: string, user: string): Promise<Client> {
    const { status, body } = await ask(`${url}/login`, { user })
    if (status !== 200 || typeof body.token !== 'string') {
      throw new Error(`login at ${url} failed: ${status} ${JSON.stringify(body)}`)
    }
    return new Client(url, body.token)
  }

  /** The same session through another API. */
  at(url: string): Client {
    return new Client(url, this.#token)
  }

  async view(item: string): Promise<Answer> {
    return await ask(`${this.#url}/views`, { item }, this.#token)
  }

  async views(): Promise<string[]> {
    const { body } = await ask(`${this.#url}/me/views`, undefined, this.#token)
    return (body.items as { item: string }[]).map(({ item }) => item)
  }
}

/** How often an item was viewed. */
export async function countOf(url: string, item: string): Promise<number> {
  const { body } = await ask(`${url}/items/popular?limit=100`)
  const items = body.items as { item: string; views: number }[]
  return items.find((found) => found.item === item)?.views ?? 0
}

async function ask(url: string, body?: object, token?: string): Promise<Answer> {
  const answer = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  })
  const text = await answer.text()
  const json = answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : {}
  return { status: answer.status, body: json }
}

/** Users that view one item, each with one request at a time, until stopped. */
export class Viewers {
  readonly item: string
  /** Acknowledged views. */
  done = 0
  /** Views that may have been written. */
  unknown = 0
  /** Views that were rejected and certainly not written. */
  refused = 0
  #stopped = false
  readonly #running: Promise<void>[]

  constructor(clients: readonly Client[], item: string) {
    this.item = item
    this.#running = clients.map(async (client) => {
      while (!this.#stopped) await this.#view(client)
    })
  }

  async #view(client: Client): Promise<void> {
    const answer = await client.view(this.item).catch(() => null) // the connection was lost
    if (answer?.status === 200) {
      this.done += 1
      return
    }
    // A response of the proxy does not say what the API has done.
    if (answer?.body.mayHaveWritten === false) this.refused += 1
    else this.unknown += 1
    await delay(20) // the API is unavailable at the moment
  }

  /** Resolves once `count` more views were acknowledged. */
  async more(count: number): Promise<void> {
    const wanted = this.done + count
    while (this.done < wanted) await delay(20)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#running)
  }
}
