import '../core/node-version.ts'

export type { SwappedField } from '../core/data/data-fields.ts'
export {
  type AddOptions,
  type ExternalSession,
  type ExternalSessions,
  externalSessions,
} from './external-sessions.ts'
