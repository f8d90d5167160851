import { styleText } from 'node:util'
import { hideCredentials } from '../address.ts'
import { ioThreadsText, type RedisFacts } from '../redis-info.ts'
import type { RunningPrograms } from '../stack.ts'
import { columns, wrapped } from '../terminal.ts'
import type { StartSettings } from './settings.ts'

const bold = (text: string) => styleText('bold', text)

/** A label with lines next to it, wrapped at words. */
const row = (label: string, ...lines: string[]) =>
  lines
    .flatMap((line) => wrapped(line, columns() - 14))
    .map((line, index) => `  ${bold((index === 0 ? label : '').padEnd(12))}${line}`)
    .join('\n')

/** The text that `npm start` prints when everything is running. */
export function banner(stack: RunningPrograms, facts: RedisFacts, settings: StartSettings): string {
  const [url, naive] = ['batch', 'naive'].map(
    (variant) => stack.apis.find((api) => api.variant === variant)?.url,
  )
  const json = `-H 'content-type: application/json'`
  return `
${bold('Onetrip is ready.')}

${row('Demo page', `${url}/${settings.race ? '   with a race between both APIs' : ''}`)}
${row('Batch API', `${url}   persistent Redis connections, shared round trips`)}
${row('Naive API', `${naive}   a new Redis connection per request, one round trip per command`)}
${row('Redis', ...redisLines(stack, facts, settings))}

${bold('Try it')}
  TOKEN=$(curl -s ${url}/login ${json} -d '{"user":"ada"}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
  curl -sw '\\n' ${url}/views -H "authorization: Bearer $TOKEN" ${json} -d '{"item":"tea"}'
  curl -sw '\\n' ${url}/items/popular

${row('API docs', `${url}/docs`)}
${row('Compare', `npm run load, then open ${url}/report`)}
${row('Stop', `Ctrl-C here, or kill ${process.pid}`)}
`
}

/** One line per primary, with its replicas. */
function clusterLines(nodes: NonNullable<RunningPrograms['redis']['nodes']>): string[] {
  const named = nodes.map(({ url, replicaOf }) => ({ address: new URL(url).host, replicaOf }))
  const primaries = named.filter(({ replicaOf }) => replicaOf === null)
  const lines = primaries.map(({ address: primary }) => {
    const replicas = named.filter(({ replicaOf }) => replicaOf === primary)
    return `  ${primary}, replica ${replicas.map(({ address }) => address).join(', ') || 'none'}`
  })
  return [`a cluster of ${primaries.length} primaries, with their replicas:`, ...lines]
}

function redisLines(
  { redis: { transport, socket, nodes = [] } }: RunningPrograms,
  { version, build, ioThreads }: RedisFacts,
  { redis, installed }: StartSettings,
): string[] {
  const ours = build === null ? 'NOT the patched build' : `build ${build}`
  const way = transport === 'unix' ? 'its Unix socket' : 'TCP'
  const use = `the APIs use ${way}; ${ioThreadsText(ioThreads)}`
  if (redis.kind === 'foreign') {
    return [`${version} at ${hideCredentials(redis.url)} (REDIS_URL), ${ours}`, use]
  }
  const program = installed === null ? '' : `${installed} (REDIS_SERVER), `
  const where =
    redis.kind === 'own' ? [`127.0.0.1:${redis.port} and ${socket}`] : clusterLines(nodes)
  const lines = [`${version}, ${program}${ours}`, ...where, use, `data in ${redis.directory}`]
  if (installed === null) {
    const users = redis.kind === 'own' ? 'api and operator' : 'api, operator and cluster'
    lines.push(`users ${users}; their passwords are in ${redis.secrets}`)
  }
  return lines
}
