import '../core/node-version.ts'

export { type BridgeOptions, type BridgeSide, bridgeStores } from './bridge.ts'
export {
  finishMigration,
  type MigrateOptions,
  type MigrationProgress,
  type MigrationSurvey,
  migrate,
  surveyMigration,
} from './migrate.ts'
export { type MigrationSide, type MigrationSides, readySides } from './state.ts'
