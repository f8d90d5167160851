/** The first line of a client's standard input. */
export interface Plan {
  url: string
  /** A session for each caller. */
  sessions: Session[]
  /** Each caller starts at another place of this list. */
  items: string[]
  warmUp: number
  /** Whether to warm up until the rate stops rising. The clients in Go ignore it: their code is compiled before. */
  untilSteady: boolean
  seconds: number
  /** The secret with which the tokens are signed. */
  secret: string
}

export interface Session {
  id: string
  token: string
  user: string
}
