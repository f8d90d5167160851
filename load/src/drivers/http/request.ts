import type { Call } from '@onetrip/stack/measure/workload.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { type Command, Option } from 'commander'
import { request } from 'undici'
import type { Api } from './target.ts'

// The options for requests to any HTTP service.

/** An argument that may contain a credential. Results show its `name` instead of its value. */
class Redacted {
  readonly name: string
  readonly #value: string

  constructor(name: string, value: string) {
    this.name = name
    this.#value = value
  }

  get value(): string {
    return this.#value
  }

  toJSON = (): string => this.name
  toString = (): string => this.name
}

/** The request to send. Without these options and a path in the URL, the workload of our APIs is sent. */
export interface RequestFlags {
  method?: string
  header?: readonly Redacted[]
  body?: Redacted
}

// Without HEAD: autocannon would wait for a body.
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Options whose values are removed from the command line in a result. */
export const redactedOptions = ['--header', '--body']

/** Adds `--method`, `--header` and `--body`. */
export function addRequest(command: Command): Command {
  const method = 'with --url: the HTTP method (default: POST with a body, else GET)'
  return command
    .addOption(new Option('--method <name>', method).choices(methods))
    .addOption(
      new Option('--header <text>', "with --url: a header, 'name: value'; repeatable").argParser(
        (text: string, before: readonly Redacted[] = []) => [...before, header(text)],
      ),
    )
    .addOption(
      new Option('--body <text>', 'with --url: the body of each request').argParser(
        (text) => new Redacted(`${Buffer.byteLength(text)} bytes`, text),
      ),
    )
}

function header(text: string): Redacted {
  const { name, value } =
    /^(?<name>[\w!#$%&'*+.^`|~-]+):\s*(?<value>[^\r\n\0]*)$/.exec(text)?.groups ?? {}
  if (name && value !== undefined) return new Redacted(name.toLowerCase(), value)
  // Not an InvalidArgumentError, because commander would print the argument.
  throw new Problem("--header must have the form 'name: value', such as 'accept: text/html'.")
}

/** Whether the options have a request: a method, a header, a body, or a path in a URL. */
export function hasRequest({ url = [], method, header, body }: RequestFlags & { url?: string[] }) {
  return Boolean(method ?? header ?? body) || url.some((one) => new URL(one).origin !== one)
}

/** One request for each URL. @throws Problem without `--url`. */
export function requestsOf({ url, method, header = [], body }: RequestFlags & { url?: string[] }) {
  if (!url) throw new Problem('--method, --header and --body need --url.')
  return url.map((target): { api: Api; call: Call } => {
    const { origin, pathname, search } = new URL(target)
    return {
      api: { variant: target, url: origin },
      call: {
        method: (method ?? (body ? 'POST' : 'GET')) as Call['method'],
        path: pathname + search,
        headers: Object.fromEntries(header.map(({ name, value }) => [name, value])),
        body: body?.value ?? null,
      },
    }
  })
}

const FIRST_ANSWER_MS = 10_000

/**
 * Sends a request and checks its answer.
 *
 * @throws Problem when the answer is not a 2xx, or does not arrive within ten seconds; the reason of `signal`.
 */
export async function requireAnswer(origin: string, call: Call, signal: AbortSignal) {
  const { path, ...sent } = call
  const what = `${call.method} ${origin}${path}`
  const timeout = AbortSignal.timeout(FIRST_ANSWER_MS)
  const answer = await request(origin + path, {
    ...sent,
    reset: true,
    signal: AbortSignal.any([signal, timeout]),
  }).catch((cause: NodeJS.ErrnoException) => {
    signal.throwIfAborted()
    const why = timeout.aborted ? 'no answer within 10 s' : (cause.code ?? cause.message)
    throw new Problem(`${what} failed: ${why}.`, { cause })
  })
  await answer.body.dump()
  if (answer.statusCode >= 200 && answer.statusCode < 300) return
  throw new Problem(
    `${what} was answered with ${answer.statusCode}. Only 2xx counts as a success: check --method, --header and --body.`,
  )
}
