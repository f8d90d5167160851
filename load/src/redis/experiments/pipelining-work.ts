/** What redis-benchmark sends: how, how many commands in one write, and how many keys in a command. */
export interface Work {
  name: string
  /** The command, as redis-benchmark takes it. */
  command: readonly string[]
  pipeline: number
  keys: number
}

/** redis-benchmark's own key and value, which it uses for `-t get` and `-t set`. */
const KEY = 'key:__rand_int__'
const VALUE = 'xxx'

/** All of them; the first two are what the others are compared with. */
export function works(pipelines: readonly number[], keys: readonly number[]): Work[] {
  const pipelined = [1, ...pipelines.filter((pipeline) => pipeline !== 1)].flatMap((pipeline) => [
    { name: `GET -P ${pipeline}`, command: ['GET', KEY], pipeline, keys: 1 },
    { name: `SET -P ${pipeline}`, command: ['SET', KEY, VALUE], pipeline, keys: 1 },
  ])
  const variadic = keys.flatMap((count) => {
    const list = names(count)
    return [
      { name: `MGET of ${count}`, command: ['MGET', ...list], pipeline: 1, keys: count },
      {
        name: `MSET of ${count}`,
        command: ['MSET', ...list.flatMap((key) => [key, VALUE])],
        pipeline: 1,
        keys: count,
      },
    ]
  })
  return [...pipelined, ...variadic]
}

/** Every key that is read, with its value. */
export function keyspace(keys: readonly number[]): Record<string, string> {
  const list = [KEY, ...names(Math.max(0, ...keys))]
  return Object.fromEntries(list.map((key) => [key, VALUE]))
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `${KEY}:${index}`)

/** The arguments of redis-benchmark. */
export function benchmarkArgs(
  work: Work,
  run: { port: number; clients: number; requests: number },
): string[] {
  const { port, clients, requests } = run
  return [
    ...['-p', String(port), '-c', String(clients), '-n', String(requests)],
    ...['-P', String(work.pipeline)],
    ...work.command,
  ]
}
