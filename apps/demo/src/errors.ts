import type { ErrorKind } from '@onetrip/api'

// The errors of the demo. Nothing was written when they are thrown.

const retryable = { retrySafe: true, mayHaveWritten: false }

export const noRace: ErrorKind = {
  code: 'DEMO_NO_RACE',
  statusCode: 404,
  meaning: 'the demo race is not available',
  retrySafe: false,
  mayHaveWritten: false,
}

export const raceRunning: ErrorKind = {
  code: 'DEMO_RACE_RUNNING',
  statusCode: 409,
  meaning: 'a race is running; retry when it has ended',
  ...retryable,
}

export const serviceFailed: ErrorKind = {
  code: 'DEMO_SERVICE_FAILED',
  statusCode: 503,
  meaning: 'the demo service failed or does not answer',
  ...retryable,
}
