import { styleText } from 'node:util'
import { hideCredentials } from '../address.ts'
import type { RedisFacts } from '../redis-info.ts'
import type { Stack } from '../stack.ts'
import type { StartSettings } from './settings.ts'

const bold = (text: string) => styleText('bold', text)

const meanings: Partial<Record<string, [name: string, meaning: string]>> = {
  batch: ['Pooled API', 'requests share round trips, over connections that stay open'],
  naive: ['Naive API', 'a new Redis connection per request, one round trip per command'],
}

/** What `npm start` prints when all of it runs. */
export function banner(stack: Stack, facts: RedisFacts, settings: StartSettings): string {
  const row = (label: string, ...lines: string[]) =>
    lines.map((line, index) => `  ${bold((index === 0 ? label : '').padEnd(12))}${line}`).join('\n')
  const url = stack.apis.find(({ variant }) => variant === 'batch')?.url ?? ''
  return [
    '',
    bold('Onetrip is ready.'),
    '',
    ...stack.apis.map(({ variant, url }) => {
      const [name, meaning] = meanings[variant] ?? [`${variant} API`, '']
      return row(name, `${url}   ${meaning}`)
    }),
    row('Redis', ...redisLines(stack, facts, settings)),
    '',
    bold('Try it'),
    ...curlLines(url).map((line) => `  ${line}`),
    '',
    row('API', `${url}/docs`),
    row('Compare', `npm run load, and look at ${url}/report`),
    row('Stop', `Ctrl-C here, or kill ${process.pid}`),
    '',
  ].join('\n')
}

function redisLines(
  stack: Stack,
  { version, build, ioThreads }: RedisFacts,
  { redis, installed }: StartSettings,
): string[] {
  const threads = `${ioThreads} I/O ${ioThreads === 1 ? 'thread' : 'threads'}`
  const way = stack.redis.transport === 'unix' ? 'its Unix socket' : 'TCP'
  const use = `the APIs use ${way}; ${threads}`
  if (redis.kind === 'foreign') {
    const which = build === null ? 'NOT the patched build' : `build ${build}`
    return [`${version} at ${hideCredentials(redis.url)} (REDIS_URL), ${which}`, use]
  }
  const name = installed === null ? `build ${build}` : `${installed} (REDIS_SERVER)`
  const warning = installed !== null && build === null ? ', NOT the patched build' : ''
  return [
    `${version}, ${name}${warning}`,
    `127.0.0.1:${redis.port} and ${stack.redis.socket}`,
    use,
    `data in ${redis.directory}`,
    ...(installed === null
      ? [`users api and operator; their passwords are in ${redis.secrets}`]
      : []),
  ]
}

/** Three lines to paste into a shell: log in, record a view, see the popular items. */
function curlLines(url: string): string[] {
  const json = `-H 'content-type: application/json'`
  return [
    `TOKEN=$(curl -s ${url}/login ${json} -d '{"user":"ada"}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    `curl -sw '\\n' ${url}/views -H "authorization: Bearer $TOKEN" ${json} -d '{"item":"tea"}'`,
    `curl -sw '\\n' ${url}/items/popular`,
  ]
}
