/**
 * How many I/O threads Redis gets on a machine; Redis counts its main thread, too.
 *
 * Half of the cores, at most eight, for the other half runs what uses Redis; the source articles found a quarter to half
 * of the cores right. At least three: with a core each, three should gain in 37 of 40 loads and two in 23. Below four
 * cores off (1): the threads would take cores from what uses Redis, and a client with one connection, such as a
 * pool of one, never gains, since an I/O thread serves whole connections. docs/redis-experiments.md has the
 * figures ("I/O threads").
 */
export function ioThreadsFor(cores: number): number {
  return cores < 4 ? 1 : Math.max(3, Math.min(8, Math.floor(cores / 2)))
}
