import { type Check, names, perSecond, type Severity } from './finding.ts'
import { commandName, counted, figure, percent } from './text.ts'

// Checks of the server: slow commands and refused connections.

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

/** The severity for a time in which all clients wait. */
function severityOfStall(longestMs: number): Severity {
  if (longestMs >= 1_000) return 'high'
  return longestMs >= 100 ? 'medium' : 'low'
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

export const serverChecks: readonly Check[] = [rejections, slowCommands]
