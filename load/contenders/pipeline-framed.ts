import { serveStrategy } from './support/serve.ts'

await serveStrategy('pipeline-framed')
