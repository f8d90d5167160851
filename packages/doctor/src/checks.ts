import { clientChecks } from './client-findings.ts'
import { type Finding, type Observation, ranked, severities } from './finding.ts'
import { serverChecks } from './server-findings.ts'

/** With fewer round trips on each short connection, connecting is the cause of single round trips, too. */
const TRIPS_ON_KEPT = 10

/** The findings of all checks, ranked. */
export function findingsOf(seen: Observation): Finding[] {
  const found = [...clientChecks, ...serverChecks].flatMap((check) => check(seen) ?? [])
  const churn = found.find(({ id }) => id === 'connection-churn')
  const trips = found.find(({ id }) => id === 'one-command-per-trip')
  const { trips: count, connectionsNotKept } = seen.figures
  if (!churn || !trips || count > TRIPS_ON_KEPT * connectionsNotKept) return ranked(found)
  const worst = severities.find((one) => [churn.severity, trips.severity].includes(one))
  const cause = { ...churn, severity: worst ?? churn.severity }
  return ranked([cause, ...found.filter((one) => one !== churn)], cause)
}
