import { writeFile } from 'node:fs/promises'
import { run } from './command.ts'

/** The firewall rules of this machine, for IPv4 or IPv6. */
export interface Firewall {
  command: string
  /** In the format of `iptables-save`, without Docker's rules; undefined if the command does not exist. */
  rules: string | undefined
}

/**
 * Reads the rules that stay when no Docker engine runs.
 *
 * @param command `iptables` or `ip6tables`.
 */
export async function firewallOf(command: string): Promise<Firewall> {
  const rules = await saved(command)
  return { command, rules: rules === undefined ? undefined : withoutEngine(rules) }
}

/**
 * Removes the rules of a Docker engine: with them, the kernel tracks every connection of this machine.
 *
 * @param path of a temporary file.
 */
export async function restore({ command, rules }: Firewall, path: string): Promise<void> {
  if (rules === undefined) return
  const wanted = new Set(tablesOf(rules).map(nameOf))
  for (const table of tablesOf((await saved(command)) ?? '').map(nameOf)) {
    if (wanted.has(table)) continue
    if (table === 'filter') await run([command, '-P', 'FORWARD', 'ACCEPT'])
    await run([command, '-t', table, '-F'])
    await run([command, '-t', table, '-X'])
    // With nftables, the kernel tracks connections even for an empty table.
    const family = command === 'iptables' ? 'ip' : 'ip6'
    await run(['nft', 'delete', 'table', family, table]).catch(() => {})
  }
  await writeFile(path, rules)
  await run([`${command}-restore`, path])
}

/** Removes the rules that a killed Docker engine left, and tables that have no other rules. */
export function withoutEngine(rules: string): string {
  return tablesOf(rules)
    .flatMap((table) => {
      const lines = table.split('\n')
      const others = lines.filter((line) => !OF_AN_ENGINE.test(line))
      return others.length === lines.length || others.some(isRule) ? [others.join('\n')] : []
    })
    .map((table) => `${table}\n`)
    .join('')
}

const OF_AN_ENGINE = /\bDOCKER\b|\bdocker0\b|\bbr-[0-9a-f]{12}\b/

/** A rule, or a user-defined chain; built-in chains have a policy instead of `-`. */
const isRule = (line: string) => /^-A |^:\S+ - /.test(line)

const tablesOf = (rules: string) => rules.match(/^\*\w+$.*?^COMMIT$/gms) ?? []

const nameOf = (table: string) => /^\*(\w+)/.exec(table)?.[1] ?? ''

async function saved(command: string): Promise<string | undefined> {
  const { code, stdout } = await run([`${command}-save`]).catch(() => ({ code: 1, stdout: '' }))
  return code === 0 ? stdout : undefined
}
