/**
 * The number of I/O threads of Redis on a machine, including the main thread.
 *
 * Half of the cores, at most eight: the other half is for the clients of Redis, and the source articles
 * recommend a quarter to half of the cores. At least three: with a core each, three should gain with more loads
 * than two. Below four cores, 1 (off): the threads would take cores from the clients. An I/O thread serves whole
 * connections, so a client with one connection, such as a pool of one, never gains. docs/io-threads.md has the
 * figures.
 */
export function ioThreadsFor(cores: number): number {
  return cores < 4 ? 1 : Math.max(3, Math.min(8, Math.floor(cores / 2)))
}
