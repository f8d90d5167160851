import { callAsUser, hasSession } from './account.js'
import { messageFor } from './api.js'
import { announce, byId, create, notice, setText, showList } from './dom.js'
import { ago } from './format.js'

/** @typedef {{ id: string, label?: string, loggedInAt: number, lastSeenAt: number, current: boolean }} Session */

const others = byId('log-out-others', HTMLButtonElement)

let onEnded = () => {}

/** @param {() => void} listener Called when the user has ended other sessions. */
export function startSessions(listener) {
  onEnded = listener
  others.addEventListener('click', () =>
    end(others, '?others=true', 'All other browsers are logged out.'),
  )
}

/** Lists the user's sessions, each with a button that ends it. @param {readonly Session[]} sessions */
export function showSessions(sessions) {
  const now = Date.now()
  showList(
    byId('sessions', HTMLElement),
    sessions.toSorted((a, b) => Number(b.current) - Number(a.current)),
    ({ id }) => id,
    row,
    (element, { loggedInAt, lastSeenAt }) => {
      const times = element.querySelector('.times')
      const text = `logged in ${ago(now - loggedInAt)}, last seen ${ago(now - lastSeenAt)}`
      if (times) setText(times, text)
    },
  )
  others.hidden = sessions.length < 2
}

/** This browser's row has no button: its buttons are below the list. @param {Session} session */
function row({ id, label = 'unknown device', current }) {
  const name = current
    ? create('span', { class: 'name current' }, `This browser: ${label}`)
    : create('span', { class: 'name' }, label)
  const text = create('div', {}, name, create('span', { class: 'times small muted' }))
  if (current) return create('li', {}, text)
  const button = create('button', { type: 'button', class: 'button quiet' }, 'Log out that browser')
  button.addEventListener('click', () => end(button, `/${id}`, 'That browser is logged out.'))
  return create('li', {}, text, button)
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} which
 * @param {string} done
 */
async function end(button, which, done) {
  button.disabled = true
  const problem = byId('account-problem', HTMLElement)
  notice(problem, '')
  try {
    await callAsUser('DELETE', `/me/sessions${which}`)
    announce(done)
    onEnded()
  } catch (error) {
    if (hasSession()) notice(problem, messageFor(error))
  } finally {
    button.disabled = false
  }
}
