/** The first line of a client's standard input. */
export interface Plan {
  url: string
  /** A session for each caller. */
  sessions: Session[]
  /** Each caller starts at another place of this list. */
  items: string[]
  warmUp: number
  seconds: number
  /** The secret with which the tokens are signed. */
  secret: string
}

export interface Session {
  id: string
  token: string
  user: string
}
