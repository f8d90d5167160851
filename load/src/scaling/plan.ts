import type { Variant } from '../contenders.ts'
import { isContender } from '../contenders.ts'
import { describeLink, type LinkPlan, links } from '../drivers/redis/links.ts'
import type { ScalingOptions } from './options.ts'
import type { Dimension, Setting } from './result.ts'

/** A point of a series before it is measured. */
export interface PlannedPoint extends Setting {
  plan: LinkPlan
  variants: Variant[]
}

/** What stays the same while something else is varied. */
const CONNECTIONS = 64
const WORKERS = 1
const [loopback] = links('loopback') as [LinkPlan]

/** The points of a series, in the order in which they are shown. */
export function pointsOf(by: Dimension, options: ScalingOptions): PlannedPoint[] {
  const { variants } = options
  const usual = { connections: CONNECTIONS, workers: WORKERS, plan: loopback, variants }
  const point = (given: Partial<typeof usual>): PlannedPoint => {
    const { plan, ...setting } = { ...usual, ...given }
    return { ...setting, plan, link: plan.name }
  }
  if (by === 'connections') return options.connections.map((connections) => point({ connections }))
  if (by === 'distance') {
    return options.links.map((plan) => point({ plan, variants: withSequential(variants) }))
  }
  // What our store is compared with are programs of one process.
  const able = (workers: number) =>
    workers === 1 ? variants : variants.filter((name) => !isContender(name))
  return options.workers
    .map((workers) => point({ workers, variants: able(workers) }))
    .filter((one) => one.variants.length > 0)
}

/** Table 4 of the documents has both. */
function withSequential(variants: readonly Variant[]): Variant[] {
  if (!variants.includes('pipeline') || variants.includes('sequential')) return [...variants]
  return variants.flatMap((name) => (name === 'pipeline' ? ['sequential', name] : [name]))
}

/** The link in words: `vpn: 48 ms at 1.8 Mb/s`. */
export const linkText = ({ plan }: PlannedPoint): string => describeLink(plan)

const FAR_MS = 10

/** Whether a request takes so long that the usual run would be over before its answer. */
export const isFar = ({ plan }: PlannedPoint): boolean => (plan.distant?.roundTripMs ?? 0) >= FAR_MS

/** So many connections have to be opened, and to get an answer or two each. */
const MANY = 500
const [MANY_S, FAR_S] = [3, 6]

/** How long a run at this point takes, when others take `duration`. */
export function secondsAt(point: PlannedPoint, duration: number): number {
  const least = isFar(point) ? FAR_S : point.connections >= MANY ? MANY_S : 0
  return Math.max(least, duration)
}
