import { CallError, call, messageFor } from './api.js'
import { announce, byId, notice } from './dom.js'

/** localStorage key, set while the user is logged in. Without it the page does not send `GET /me`. */
const HINT = 'onetrip-logged-in'

/** @typedef {string | null | undefined} User `null` in a guest session, undefined when logged out. */

/** @type {User} */
let user
/** @type {((user: User) => void)[]} */
const listeners = []

/** True during a logout: a 401 of a concurrent request is then expected. */
let isLeaving = false

const form = byId('login', HTMLFormElement)
const name = byId('login-name', HTMLInputElement)
const problem = byId('login-problem', HTMLElement)

/** Calls the listener after each login and logout. @param {(user: User) => void} listener */
export function onUser(listener) {
  listeners.push(listener)
}

/** @param {User} next */
function setUser(next) {
  user = next
  const isLoggedIn = next !== undefined
  if (isLoggedIn) localStorage.setItem(HINT, 'yes')
  else localStorage.removeItem(HINT)
  form.hidden = isLoggedIn
  byId('logged-in', HTMLElement).hidden = !isLoggedIn
  byId('user', HTMLElement).textContent = next ?? 'guest'
  for (const listener of listeners) listener(next)
}

/** Whether a user or a guest session is logged in. */
export const isLoggedIn = () => user !== undefined

/** Whether this user is logged in. @param {string} name */
export const isUser = (name) => user === name

/**
 * Shows the login form.
 *
 * @param {string} [why]
 */
function loggedOut(why = '') {
  if (user === undefined) return
  setUser(undefined)
  notice(problem, why)
}

/**
 * Sends a request that needs a session. If the session has ended, the login form appears.
 *
 * @type {typeof call}
 */
export async function callAsUser(method, path, options) {
  try {
    return await call(method, path, options)
  } catch (error) {
    if (error instanceof CallError && error.status === 401) {
      const ended = 'Your session has ended. Log in again.'
      loggedOut(isLeaving ? '' : ended)
    }
    throw error
  }
}

async function logIn() {
  notice(problem, '')
  try {
    const { user: logged } = await call('POST', '/login', { body: { user: name.value } })
    name.value = ''
    setUser(logged)
    announce(`You are logged in as ${logged}.`)
    byId('items', HTMLElement).querySelector('button')?.focus({ preventScroll: true })
  } catch (error) {
    notice(problem, messageFor(error))
  }
}

/** Ends this session or all sessions of the user. @param {'POST' | 'DELETE'} method @param {string} path */
async function logOut(method, path) {
  isLeaving = true
  try {
    await callAsUser(method, path)
    loggedOut()
    announce('You are logged out.')
    name.focus()
  } catch (error) {
    if (isLoggedIn()) notice(byId('account-problem', HTMLElement), messageFor(error))
  } finally {
    isLeaving = false
  }
}

/** Shows the login form, or the user who is already logged in. */
export async function startAccount() {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void logIn()
  })
  byId('log-out', HTMLButtonElement).addEventListener('click', () => logOut('POST', '/logout'))
  byId('log-out-everywhere', HTMLButtonElement).addEventListener('click', () =>
    logOut('DELETE', '/me/sessions'),
  )
  if (localStorage.getItem(HINT) !== null) await resume()
}

/** Reads the current user. Retries until the API answers. */
async function resume(waitMs = 1_000) {
  try {
    setUser((await call('GET', '/me')).user)
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    if (error.status === 401) localStorage.removeItem(HINT)
    else setTimeout(resume, waitMs, Math.min(waitMs * 2, 15_000))
  }
}
