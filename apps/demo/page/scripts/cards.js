import { onUser } from './account.js'
import { feedCard } from './cards/feed.js'
import { riskCard } from './cards/risk.js'
import { saleCard } from './cards/sale.js'
import { viewersCard } from './cards/viewers.js'
import { byId } from './dom.js'
import { poll } from './poll.js'

/** Polling interval while the cards are visible. */
const EVERY_MS = 5_000

/**
 * @typedef {object} Card
 * @property {() => Promise<void>} read Reads the data of the card. Called only while a user is logged in.
 * @property {() => void} clear Removes the data of the user. Called after each login and logout.
 */

/** Starts the cards. They send requests only while they are visible and a user is logged in. */
export function startCards() {
  const section = byId('more', HTMLElement)
  const cards = [saleCard(), viewersCard(), feedCard(() => refresh()), riskCard()]
  let isVisible = false
  let hasUser = false
  const { refresh } = poll(async () => {
    if (isVisible && hasUser) await Promise.all(cards.map(({ read }) => read()))
  }, EVERY_MS)
  new IntersectionObserver((entries) => {
    isVisible = entries.at(-1)?.isIntersecting ?? false
    if (isVisible) void refresh()
  }).observe(section)
  onUser((user) => {
    hasUser = typeof user === 'string'
    byId('more-login', HTMLElement).hidden = hasUser
    for (const fieldset of section.querySelectorAll('fieldset')) fieldset.disabled = !hasUser
    for (const { clear } of cards) clear()
    void refresh()
  })
}
