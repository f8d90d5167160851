import { callAsUser, isLoggedIn } from './account.js'
import { messageFor } from './api.js'
import { announce, byId, create, notice, setText, showList } from './dom.js'
import { ago } from './format.js'

/** @typedef {{ id: string, loggedInAt: number, lastSeenAt: number, current: boolean }} Session */

/**
 * Lists the user's sessions, each with a button that ends it.
 *
 * @param {readonly Session[]} sessions
 * @param {() => void} onEnded
 */
export function showSessions(sessions, onEnded) {
  const now = Date.now()
  showList(
    byId('sessions', HTMLElement),
    sessions.toSorted((a, b) => Number(b.current) - Number(a.current)),
    ({ id }) => id,
    (session) => row(session, onEnded),
    (element, { loggedInAt, lastSeenAt }) => {
      const times = element.querySelector('.times')
      const text = `logged in ${ago(now - loggedInAt)}, last seen ${ago(now - lastSeenAt)}`
      if (times) setText(times, text)
    },
  )
}

/**
 * This browser's row has no button: its buttons are below the list.
 *
 * @param {Session} session
 * @param {() => void} onEnded
 */
function row({ id, current }, onEnded) {
  const name = current ? 'This browser' : 'Another browser'
  const text = create(
    'div',
    {},
    create('span', { class: current ? 'name current' : 'name' }, name),
    create('span', { class: 'times small muted' }),
  )
  return current ? create('li', {}, text) : create('li', {}, text, endButton(id, onEnded))
}

/** @param {string} id @param {() => void} onEnded */
function endButton(id, onEnded) {
  const button = create('button', { type: 'button', class: 'button quiet' }, 'Log out that browser')
  button.addEventListener('click', async () => {
    button.disabled = true
    const problem = byId('account-problem', HTMLElement)
    notice(problem, '')
    try {
      await callAsUser('DELETE', `/me/sessions/${id}`)
      announce('That browser is logged out.')
      onEnded()
    } catch (error) {
      button.disabled = false
      if (isLoggedIn()) notice(problem, messageFor(error))
    }
  })
  return button
}
