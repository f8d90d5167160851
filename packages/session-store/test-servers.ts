/**
 * `npm run test:servers`: runs the tests of the store and of the doctor on each server found, one after the other:
 * those that `.ci/servers` fetched, and `redis-server` and `valkey-server` in the PATH. `npm test` covers the
 * repository's own build.
 *
 * Passes its arguments to vitest. Exits with 1 if a test failed or no server was found.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const fetched = join(root, '.onetrip/servers')
const programs = ['redis-server', 'valkey-server']

/** The servers in the table of docs/servers.md, except the repository's own build. */
const wanted = ['Redis 7.0', 'Valkey 9.1']

function findServers(): string[] {
  const names = existsSync(fetched) ? readdirSync(fetched) : [] // which .ci/servers has fetched
  const folders = names.map((name) => join(fetched, name))
  folders.push(...(process.env.PATH ?? '').split(delimiter))
  const paths = folders.flatMap((folder) => programs.map((program) => join(folder, program)))
  return [...new Set(paths.filter((path) => existsSync(path)).map((path) => realpathSync(path)))]
}

/** Program and version, such as `Redis 7.0.15`. */
function nameOf(path: string): string {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  const [, program = 'unknown', version = ''] = /^(\w+) server v=([\d.]+)/.exec(stdout ?? '') ?? []
  return `${program} ${version}`.trim()
}

const servers = new Map(findServers().map((path) => [nameOf(path), path]))
const results: string[] = []
for (const [name, path] of servers) {
  console.log(`\n== ${name} (${path})`)
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run']
  vitest.push('--project=redis', '--project=cluster')
  const chosen = process.argv.slice(2)
  const usual = [
    'packages/session-store/test',
    'packages/cluster/test',
    'packages/doctor/test/doctor.redis',
    'load/test/redis-facts',
  ]
  const tests = chosen.length > 0 ? chosen : usual
  const { status } = spawnSync(process.execPath, [...vitest, ...tests], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, REDIS_SERVER: path },
  })
  if (status !== 0) process.exitCode = 1
  results.push(`${status === 0 ? 'passed ' : 'FAILED '} ${name}`)
}
for (const name of wanted) {
  if ([...servers.keys()].some((found) => found.startsWith(name))) continue
  results.push(`SKIPPED ${name}: not found. Run .ci/servers, or add it to the PATH`)
}
console.log(`\n${results.join('\n')}`)
if (servers.size === 0) process.exitCode = 1
