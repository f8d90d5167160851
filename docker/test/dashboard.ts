import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@onetrip/stack/places.ts'

interface Panel {
  targets?: { expr: string }[]
}

/** Every PromQL query of our Grafana dashboard. */
export function dashboardQueries(): string[] {
  const text = readFileSync(join(repository, 'docker/grafana/dashboards/onetrip.json'), 'utf8')
  const { panels } = JSON.parse(text) as { panels: Panel[] }
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
}
