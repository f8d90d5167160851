import { writeFile } from 'node:fs/promises'
import { run } from './command.ts'

/** The rules of a machine, for one of both versions of IP. */
export interface Firewall {
  command: string
  /** As `iptables-save` writes them, without an engine's; undefined where there is no such command. */
  rules: string | undefined
}

/**
 * What is to be there when no engine runs.
 *
 * @param command `iptables` or `ip6tables`.
 */
export async function firewallOf(command: string): Promise<Firewall> {
  const rules = await saved(command)
  return { command, rules: rules === undefined ? undefined : withoutEngine(rules) }
}

/**
 * Takes back the rules of an engine: with them, the kernel tracks every connection of this machine.
 *
 * @param path of a file to use for it.
 */
export async function restore({ command, rules }: Firewall, path: string): Promise<void> {
  if (rules === undefined) return
  const wanted = new Set(tablesOf(rules).map(nameOf))
  for (const table of tablesOf((await saved(command)) ?? '').map(nameOf)) {
    if (wanted.has(table)) continue
    if (table === 'filter') await run([command, '-P', 'FORWARD', 'ACCEPT'])
    await run([command, '-t', table, '-F'])
    await run([command, '-t', table, '-X'])
    // With nftables an empty table, too, has the kernel track connections.
    const family = command === 'iptables' ? 'ip' : 'ip6'
    await run(['nft', 'delete', 'table', family, table]).catch(() => {})
  }
  await writeFile(path, rules)
  await run([`${command}-restore`, path])
}

/** Without the rules that an engine which was killed has left, and without tables that have no others. */
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

/** A rule, or a chain that somebody made; built-in chains have a policy in place of `-`. */
const isRule = (line: string) => /^-A |^:\S+ - /.test(line)

const tablesOf = (rules: string) => rules.match(/^\*\w+$.*?^COMMIT$/gms) ?? []

const nameOf = (table: string) => /^\*(\w+)/.exec(table)?.[1] ?? ''

async function saved(command: string): Promise<string | undefined> {
  const { code, stdout } = await run([`${command}-save`]).catch(() => ({ code: 1, stdout: '' }))
  return code === 0 ? stdout : undefined
}
