import { callAsUser } from '../account.js'
import { byId, notice, setText } from '../dom.js'
import { figure } from '../format.js'
import { ITEMS } from '../shop.js'
import { card } from './card.js'

const outcome = byId('viewers-outcome', HTMLElement)

/** @param {number} viewers */
function showViewers(viewers) {
  const people = viewers === 1 ? 'person' : 'people'
  const text = viewers === 0 ? 'nobody yet' : `about ${figure(viewers)} ${people}`
  setText(byId('viewers', HTMLElement), text)
}

/** @returns {import('../cards.js').Card} */
export function viewersCard() {
  const { form, attempt, clear } = card('viewers-title', async (chosen) => {
    const item = String(chosen.get('item'))
    const { seenBefore, viewers } = await callAsUser('POST', `/items/${item}/viewers`)
    showViewers(viewers)
    const text = seenBefore
      ? `You viewed the ${item} before. You count once.`
      : `You viewed the ${item} for the first time.`
    notice(outcome, text)
    return text
  })
  const select = /** @type {HTMLSelectElement} */ (form.elements.namedItem('item'))
  select.append(...ITEMS.map((item) => new Option(item, item)))
  async function read() {
    const item = select.value
    const { viewers } = await callAsUser('GET', `/items/${item}/viewers`)
    if (select.value === item) showViewers(viewers)
  }
  select.addEventListener('change', () => {
    notice(outcome, '')
    void attempt(read)
  })
  return {
    read,
    clear() {
      clear()
      notice(outcome, '')
    },
  }
}
