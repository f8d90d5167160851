import { serveStrategy } from './support/serve.ts'

await serveStrategy('naive-lean')
