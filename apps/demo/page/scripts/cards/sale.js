import { callAsUser } from '../account.js'
import { CallError } from '../api.js'
import { byId, notice, setText } from '../dom.js'
import { figure } from '../format.js'
import { card } from './card.js'

const ITEM = '/items/camera'

const outcome = byId('sale-outcome', HTMLElement)

/** @param {number | undefined} left undefined: unknown. */
function showLeft(left) {
  setText(byId('sale-left', HTMLElement), left === undefined ? '–' : figure(left))
  const text = left === 0 ? 'pieces left: sold out' : left === 1 ? 'piece left' : 'pieces left'
  setText(byId('sale-text', HTMLElement), text)
}

/** @param {number} time */
const clock = (time) => new Date(time).toLocaleTimeString('en-GB')

/** @returns {import('../cards.js').Card} */
export function saleCard() {
  // Without a sale, reading the stock is a 404. So the card reads it only when it knows of a sale.
  let isOnSale = false
  let boughtAt = 0
  const { clear } = card('sale-title', async (form) => {
    const text = form.get('action') === 'buy' ? await buy() : await putOnSale(form)
    notice(outcome, text)
    return text
  })

  /** @param {FormData} form */
  async function putOnSale(form) {
    const body = { pieces: Number(form.get('pieces')) }
    const { left, sold } = await callAsUser('PUT', `${ITEM}/stock`, { body })
    isOnSale = true
    showLeft(left)
    return `On sale: ${figure(left)} left, ${figure(sold)} sold.`
  }

  async function buy() {
    try {
      const bought = await callAsUser('POST', `${ITEM}/purchases`)
      const isRepeated = bought.boughtAt === boughtAt
      boughtAt = bought.boughtAt
      isOnSale = true
      showLeft(bought.left)
      const text = `You bought one at ${clock(boughtAt)}.`
      return isRepeated ? `Repeated purchase, counted once: ${text}` : text
    } catch (error) {
      if (!(error instanceof CallError)) throw error
      if (error.code === 'DEMO_SOLD_OUT') {
        isOnSale = true
        showLeft(0)
        return 'Sold out.'
      }
      if (error.status !== 404) throw error
      ended()
      return 'The camera is not on sale yet. Put some pieces on sale.'
    }
  }

  function ended() {
    isOnSale = false
    showLeft(undefined)
  }

  return {
    async read() {
      if (!isOnSale) return
      try {
        showLeft((await callAsUser('GET', `${ITEM}/stock`)).left)
      } catch (error) {
        if (!(error instanceof CallError) || error.status !== 404) throw error
        ended()
      }
    },
    clear() {
      clear()
      boughtAt = 0
      notice(outcome, '')
    },
  }
}
