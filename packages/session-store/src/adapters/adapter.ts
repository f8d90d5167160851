import '../core/node-version.ts'

export type { SwappedField } from '../core/data/data-fields.ts'
export {
  type AddOptions,
  type ExternalPatchOptions,
  type ExternalSession,
  type ExternalSessions,
  externalSessions,
  type UserOption,
} from './external-sessions.ts'
