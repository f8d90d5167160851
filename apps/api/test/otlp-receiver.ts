import type { IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { serve } from '@onetrip/stack/testing/serve.ts'
import protobuf from 'protobufjs'

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId: string
  name: string
  /** 2: server, 3: client. */
  kind: number
  attributes: Record<string, unknown>
  /** 0: unset, 2: error. */
  status: number
  resource: Record<string, unknown>
}

export interface OtlpReceiver {
  /** Value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** All received bytes. */
  readonly bytes: Buffer
  readonly headers: readonly IncomingHttpHeaders[]
}

const root = protobuf.loadSync(fileURLToPath(new URL('otlp.proto', import.meta.url)))
const Traces = root.lookupType('Traces')

interface Attribute {
  key: string
  value: Record<string, unknown>
}
interface Decoded {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: { spans: (Omit<ReceivedSpan, 'status'> & { status: { code: number } })[] }[]
  }[]
}

const recordOf = (attributes: readonly unknown[]) =>
  Object.fromEntries(
    (attributes as Attribute[]).map(({ key, value }) => [key, Object.values(value)[0]]),
  )

/** Receives traces like an OpenTelemetry collector. Closed when the current test ends. */
export async function otlpReceiverForThisTest(): Promise<OtlpReceiver> {
  const bodies: Buffer[] = []
  const headers: IncomingHttpHeaders[] = []
  const url = await serve(async (request, response) => {
    const body = await buffer(request)
    headers.push(request.headers)
    if (request.method === 'POST' && request.url === '/v1/traces') bodies.push(body)
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  return {
    url,
    headers,
    get bytes() {
      return Buffer.concat(bodies)
    },
    get spans() {
      return bodies.flatMap(spansOf)
    },
  }
}

function spansOf(body: Buffer): ReceivedSpan[] {
  const options = { longs: Number, defaults: true, arrays: true }
  const { resourceSpans } = Traces.toObject(Traces.decode(body), options) as Decoded
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: hex(span.parentSpanId),
        attributes: recordOf(span.attributes as unknown as Attribute[]),
        status: span.status?.code ?? 0,
        resource: recordOf(resource.attributes),
      })),
    ),
  )
}

const hex = (bytes: unknown) => Buffer.from(bytes as Uint8Array).toString('hex')
