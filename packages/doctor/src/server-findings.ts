import { type Check, megabytes, names, perSecond, severityOf, severityOfStall } from './finding.ts'
import { commandName, counted, figure, percent } from './text.ts'

// Checks of the server: stalls, refused connections, and settings of I/O threads.

const READS_ALL =
  /^(hgetall|hkeys|hvals|smembers|lrange|z(rev)?range.*|s(inter|union|diff).*|sort.*)$/
const WALKS_KEYS = /^(keys|flushall|flushdb)$/
const REMOVES = /^(del|getdel)$/

/** The remedy for a slow command. */
function remedyFor(command: string): string {
  if (command === 'keys') return 'KEYS scans all keys: use SCAN, or keep a set of the names.'
  if (WALKS_KEYS.test(command)) return `${commandName(command)}: add ASYNC.`
  if (REMOVES.test(command))
    return 'Use UNLINK instead of DEL: it frees the memory in another thread.'
  if (READS_ALL.test(command)) {
    return `${commandName(command)} reads everything: read in pages (LRANGE, HSCAN, SSCAN, ZRANGE with limits) and keep collections short (LTRIM, ZREMRANGEBYRANK).`
  }
  return `${commandName(command)}: do less in one command. If it is usually fast, the server waited for a CPU or for memory: look for other processes and swapping.`
}

const slowCommands: Check = (seen) => {
  const slow = (seen.slowLog ?? []).filter(({ micros }) => micros >= seen.stallMs * 1_000)
  const longest = Math.max(0, ...slow.map(({ micros }) => micros / 1_000))
  if (slow.length === 0) return null
  const groups = Map.groupBy(slow, ({ command }) => command)
  const evidence = [...groups].map(([what, all]) => {
    const most = Math.max(...all.map(({ micros }) => micros / 1_000))
    const text = `${commandName(what)}: ${counted(all.length, 'time')}, up to ${figure(most)} ms`
    return { text, most }
  })
  const total = slow.reduce((sum, { micros }) => sum + micros, 0)
  return {
    id: 'slow-commands',
    severity: severityOfStall(longest),
    title: `Single commands block all other clients for up to ${figure(longest)} ms.`,
    saving: null,
    saves: `waits of up to ${figure(longest)} ms for every client, ${figure(total / 1e6)} s in the last hour`,
    evidence: evidence
      .toSorted((a, b) => b.most - a.most)
      .slice(0, 5)
      .map(({ text }) => text),
    articles: 'Redis in Action: LRANGE of 600 elements has 0.4 of the rate of 100.',
    remedy: [...new Set(slow.map(({ command }) => remedyFor(command)))].slice(0, 4).join(' '),
  }
}

/** Stalls by forks and by the disk, from the latency monitor and INFO. */
const stalls: Check = ({ stalls: events, info, figures, stallMs }) => {
  const number = (field: string) => Number(info.get(field) ?? 0)
  const forkMs = number('latest_fork_usec') / 1_000
  const seen = (events ?? []).filter(({ event }) => /^(fork|aof-|rdb-)/.test(event))
  const longest = Math.max(forkMs, ...seen.map(({ longestMs }) => longestMs))
  const delayed = figures.delayedFsyncs
  const failed = [
    'rdb_last_bgsave_status',
    'aof_last_write_status',
    'aof_last_bgrewrite_status',
  ].filter((field) => (info.get(field) ?? 'ok') !== 'ok')
  const isLong = longest > 0 && longest >= stallMs
  if (!isLong && delayed === 0 && failed.length === 0) return null
  const forks = number('total_forks')
  const hours = Math.max(number('uptime_in_seconds'), figures.seconds) / 3_600
  return {
    id: 'persistence-stalls',
    severity: failed.length > 0 ? 'high' : delayed > 0 ? 'medium' : severityOfStall(longest),
    title:
      failed.length > 0
        ? `Saving to disk fails (${failed.join(', ')}).`
        : `Saving to disk blocks all clients${isLong ? ` for up to ${figure(longest)} ms` : ''}.`,
    saving: null,
    saves: `waits of up to ${figure(longest)} ms for every client at each fork or fsync`,
    evidence: [
      `Last fork: ${figure(forkMs)} ms, for ${megabytes(number('used_memory_rss'))}; ${counted(forks, 'fork')} in ${figure(hours)} h.`,
      ...(delayed > 0
        ? [
            `${counted(delayed, 'write')} waited for an fsync of the AOF during the watch (aof_delayed_fsync).`,
          ]
        : []),
      ...seen.map(
        ({ event, longestMs }) => `${event}: up to ${figure(longestMs)} ms (LATENCY LATEST).`,
      ),
    ],
    articles: null,
    remedy:
      failed.length > 0
        ? 'Check the log of Redis: the disk may be full, or Redis may lack the permission to write. Until saving works, Redis may refuse writes.'
        : 'Save on a replica, or less often; turn off transparent huge pages; keep instances small. For the AOF: appendfsync everysec, a faster disk, no-appendfsync-on-rewrite yes if you accept the risk.',
  }
}

/** Above this share of a core, the main thread may be the bottleneck. */
const BUSY = 0.7

const ioThreads: Check = ({ settings, cores, costs, figures }) => {
  const threads = Number(settings?.get('io-threads') ?? Number.NaN)
  const { busy, ioShare } = costs
  if (!Number.isFinite(threads) || cores === null) return null
  const articles = 'Redis 6.2.6 on 24 cores: 2.4 times the rate with four threads.'
  const evidence = [
    `${threads === 1 ? 'I/O threads off' : counted(threads, 'I/O thread')}, ${counted(cores, 'core')}; the main thread used ${percent(busy)} of a core, ${percent(ioShare)} of it for sockets and replies.`,
    `The process used ${figure(figures.process.user + figures.process.kernel)} cores.`,
  ]
  if (threads > 1 && threads > cores) {
    return {
      id: 'io-threads-exceed-cores',
      severity: 'medium',
      title: 'There are more I/O threads than cores, so the threads compete for CPU time.',
      saving: null,
      saves: 'context switches, and waits of the main thread for a core',
      evidence,
      articles,
      remedy: `Set io-threads to ${Math.max(1, Math.floor(cores / 2))} or less and restart Redis.`,
    }
  }
  // An estimate: some of the I/O work stays on the main thread, which hands connections over and wakes the threads.
  const saving = 0.6 * ioShare
  if (threads > 1 || cores < 4 || busy < BUSY || ioShare < 0.3) return null
  return {
    id: 'io-threads-unused',
    severity: severityOf(saving, costs),
    title: 'The main thread is near its limit, and I/O threads could take over its socket work.',
    saving,
    saves: `about ${percent(saving)} of the main thread's work, moved to other threads`,
    evidence,
    articles,
    remedy: `Set io-threads to ${Math.max(3, Math.min(4, Math.floor(cores / 2)))} and restart Redis. First fix the other findings: fewer round trips need no additional core.`,
  }
}

const rejections: Check = ({ figures, clients }) => {
  const { rejected, rejectedSinceStart, connectedClients, maxClients } = figures
  const isNear = maxClients > 0 && connectedClients >= 0.8 * maxClients
  if (rejectedSinceStart === 0 && !isNear) return null
  return {
    id: 'rejected-connections',
    severity: rejected > 0 ? 'high' : isNear ? 'medium' : 'low',
    title:
      rejected > 0
        ? 'Redis refuses connections: maxclients is reached.'
        : isNear
          ? 'Redis is about to refuse connections: it is near maxclients.'
          : 'Redis has refused connections since its start, because maxclients was reached.',
    saving: null,
    saves: `failed requests: ${perSecond(rejected, figures)} connections refused`,
    evidence: [
      `${counted(rejected, 'connection')} refused during the watch, ${counted(rejectedSinceStart, 'connection')} since the start; ${connectedClients.toLocaleString('en-US')} of ${maxClients.toLocaleString('en-US')} connections are open.`,
      ...names(clients, ({ connections, active }) => [
        connections,
        `${counted(connections, 'connection')}, ${percent(1 - active)} of them idle`,
      ]),
    ],
    articles: 'Tencent Cloud: with an exhausted pool, clients open short ones.',
    remedy:
      'Use one small connection pool with pipelines in each process, and close idle connections (timeout). If you still need more connections, raise maxclients and the limit of open files.',
  }
}

export const serverChecks: readonly Check[] = [rejections, slowCommands, stalls, ioThreads]
