// Those that run experiments still take it from here.
export { runProgress } from '../progress.ts'
