/**
 * How many I/O threads Redis gets on a machine; Redis counts its main thread, too.
 *
 * Half of the cores, at least two and at most eight, for the other half runs what uses Redis; the
 * documents found a quarter to half of the cores right. Never more threads than cores: a thread that
 * waits for its core stalls all others.
 */
export function ioThreadsFor(cores: number): number {
  return Math.min(cores, Math.max(2, Math.min(8, Math.floor(cores / 2))))
}
