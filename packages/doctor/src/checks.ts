import { clientChecks } from './client-findings.ts'
import { type Finding, type Observation, ranked } from './finding.ts'
import { serverChecks } from './server-findings.ts'

/** The findings of all checks, ranked. */
export const findingsOf = (seen: Observation): Finding[] =>
  ranked([...clientChecks, ...serverChecks].flatMap((check) => check(seen) ?? []))
