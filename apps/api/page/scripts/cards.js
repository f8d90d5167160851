import { onUser } from './account.js'
import { feedCard } from './cards/feed.js'
import { riskCard } from './cards/risk.js'
import { saleCard } from './cards/sale.js'
import { viewersCard } from './cards/viewers.js'
import { byId } from './dom.js'
import { poll } from './poll.js'

/** How often the cards are read while they are in sight. */
const EVERY_MS = 5_000

/**
 * @typedef {object} Card
 * @property {() => Promise<void>} read Reads what the card shows. Called only while a user is logged in.
 * @property {() => void} clear Removes what belongs to the user. Called after each login and logout.
 */

/** Starts the cards of the applications. They send nothing while they are out of sight, or nobody is logged in. */
export function startCards() {
  const section = byId('more', HTMLElement)
  const cards = [saleCard(), viewersCard(), feedCard(() => refresh()), riskCard()]
  let isInSight = false
  let hasUser = false
  const { refresh } = poll(async () => {
    if (isInSight && hasUser) await Promise.all(cards.map(({ read }) => read()))
  }, EVERY_MS)
  new IntersectionObserver((entries) => {
    isInSight = entries.at(-1)?.isIntersecting ?? false
    if (isInSight) void refresh()
  }).observe(section)
  onUser((user) => {
    hasUser = typeof user === 'string'
    byId('more-login', HTMLElement).hidden = hasUser
    for (const fieldset of section.querySelectorAll('fieldset')) fieldset.disabled = !hasUser
    for (const { clear } of cards) clear()
    void refresh()
  })
}
