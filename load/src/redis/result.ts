import type { RedisFacts } from '@onetrip/stack/redis-info.ts'
import type { SystemLimits } from '../drivers/redis/limits.ts'
import type { Ending } from '../experiment/rounds.ts'
import type { Origin } from '../measure/machine.ts'
import type { TextTable } from '../table.ts'
import type { DocumentFigure } from './experiment.ts'

/** What an experiment, `store` or `retention` writes with `--json`; summaries and samples are its own. */
export interface ExperimentResult extends Origin, Partial<Ending> {
  format: 'onetrip-load-redis/1'
  /** Its name: `short-connections`. */
  experiment: string
  /** What it measures, in a line. */
  summary: string
  /** Share of the machine's CPU time, 0 to 1, that went elsewhere; null where it is not told. */
  elsewhere: number | null
  network: 'own namespace' | 'shared'
  limits: SystemLimits
  options: object
  /** Every Redis that was started for it. */
  servers: (RedisFacts & { started: string; config: Readonly<Record<string, string>> })[]
  /** What the documents measured. */
  documents: readonly DocumentFigure[]
  /** As they were printed. */
  tables: readonly TextTable[]
  conclusions: readonly string[]
}
