// performance.now() counts from the start of its own thread; hrtime does not, but is slower to read.
// Some time passes between reading the one and the other, the first time up to a millisecond.
const offset = Math.max(
  ...Array.from({ length: 50 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
)

/** Milliseconds, with fractions, of a clock that is the same in all threads of this process. */
export function sharedNow(): number {
  return offset + performance.now()
}
