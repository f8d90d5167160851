import { callAsUser, isLoggedIn } from '../account.js'
import { byId, setText } from '../dom.js'
import { ago, counted } from '../format.js'
import { card } from './card.js'

/** @returns {import('../cards.js').Card} */
export function riskCard() {
  const verdict = byId('risk', HTMLElement)
  const text = byId('risk-text', HTMLElement)

  async function read() {
    const { logins, lastLoginAt, reasons } = await callAsUser('GET', '/me/risk')
    if (!isLoggedIn()) return
    setText(verdict, reasons.length > 0 ? `Unusual: ${reasons.join(', ')}` : 'Nothing unusual')
    const last = lastLoginAt === null ? '' : `, the last ${ago(Date.now() - lastLoginAt)}`
    setText(text, `${counted(logins, 'login')} recorded${last}`)
  }
  const { clear } = card('risk-title', async () => {
    await read()
    return `${verdict.textContent}: ${text.textContent}`
  })
  return {
    read,
    clear() {
      clear()
      setText(verdict, '–')
      setText(text, '')
    },
  }
}
