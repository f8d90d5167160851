/**
 * How many I/O threads Redis gets on a machine; Redis counts its main thread, too.
 *
 * Half of the cores, at most eight, for the other half runs what uses Redis; the documents found a
 * quarter to half of the cores right. Only from four cores on: on two, beside an API and its load, a
 * second thread took Redis from 14 to 37 µs of CPU per pipelined view, and the API from 20,800 to
 * 14,200 requests/s (`npm run load` with REDIS_IO_THREADS=1 and 2, 2026-11-21, 2-core Debian 12).
 */
export function ioThreadsFor(cores: number): number {
  return cores < 4 ? 1 : Math.min(8, Math.floor(cores / 2))
}
