export { NODE_RATES } from './figures.ts'
export type { DoctorReport } from './report.ts'
