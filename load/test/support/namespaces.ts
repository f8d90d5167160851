import { spawnSync } from 'node:child_process'

/** Whether this process may create a network namespace and change its settings. */
export const namespaces =
  spawnSync('unshare', ['-n', 'sh', '-c', 'echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse']).status === 0
