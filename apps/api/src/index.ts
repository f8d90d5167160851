export type { Authenticator } from './authenticator.ts'
export { deviceLabel } from './device-label.ts'
export { ApiError, type ApiErrorCode, type ErrorKind } from './errors.ts'
export { type Config, loadConfig } from './read-settings.ts'
export {
  type RedisLocation,
  redisLocation,
  type Topology,
  topologyOf,
} from './redis-location.ts'
export { type Application, type ServeOptions, serve } from './serve.ts'
