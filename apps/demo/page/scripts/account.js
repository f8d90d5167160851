import { CallError, call, messageFor } from './api.js'
import { announce, byId, notice } from './dom.js'
import { listen } from './events.js'

/** localStorage key, set while this browser has a session. Without it the page does not send `GET /me`. */
const HINT = 'onetrip-logged-in'

/** @typedef {string | null | undefined} User `null` in a guest session, undefined without a session. */

/** @type {User} */
let user
/** @type {((user: User) => void)[]} */
const listeners = []

const form = byId('login', HTMLFormElement)
const name = byId('login-name', HTMLInputElement)
const problem = byId('login-problem', HTMLElement)

/** Calls the listener when a session starts or ends. @param {(user: User) => void} listener */
export function onUser(listener) {
  listeners.push(listener)
}

/** @param {User} next */
function setUser(next) {
  user = next
  if (next === undefined) localStorage.removeItem(HINT)
  else localStorage.setItem(HINT, next === null ? 'guest' : 'user')
  const isLoggedIn = typeof next === 'string'
  form.hidden = isLoggedIn
  byId('logged-in', HTMLElement).hidden = !isLoggedIn
  byId('guest', HTMLElement).hidden = next !== null
  byId('user', HTMLElement).textContent = next ?? ''
  watch()
  for (const listener of listeners) listener(next)
}

/** Whether this browser has a session, of a user or a guest. */
export const hasSession = () => user !== undefined

/** Whether this user is logged in. @param {string} name */
export const isUser = (name) => user === name

let stopWatching = () => {}

/** Learns at once when the user's session ends, such as by a logout in another browser. */
function watch() {
  stopWatching()
  if (typeof user !== 'string') return
  stopWatching = listen('/demo/session/events', ['watching', 'ended'], ({ name }) => {
    if (name === 'ended') void readUser()
  })
}

/** Shows the login form. @param {string} [why] */
function loggedOut(why = '') {
  setUser(undefined)
  notice(problem, why)
}

/**
 * Sends a request that needs a session. If the session has ended, the login form appears.
 *
 * @type {typeof call}
 */
export async function callAsUser(method, path, options) {
  const asked = user
  try {
    return await call(method, path, options)
  } catch (error) {
    const isEnd = error instanceof CallError && error.status === 401
    if (isEnd && !isChanging && user === asked && user !== undefined) {
      const where = error.code === 'ONETRIP_UNKNOWN_SESSION' ? 'You were signed out elsewhere' : ''
      loggedOut(`${where || 'Your session has ended'}. Log in again.`)
    }
    throw error
  }
}

/** True while a session starts or ends: a 401 of a concurrent request is then expected. */
let isChanging = false
/** @type {Promise<void>} */
let lastChange = Promise.resolve()

/** Starts and ends sessions one after the other, because each response sets the cookie. @param {() => Promise<void>} task */
function change(task) {
  const done = lastChange.then(async () => {
    isChanging = true
    try {
      await task()
    } catch (error) {
      watch()
      throw error
    } finally {
      isChanging = false
    }
  })
  lastChange = done.catch(() => {})
  return done
}

/** Starts a guest session, unless this browser has a session. */
export const ensureSession = () =>
  change(async () => {
    if (!hasSession()) setUser((await call('POST', '/guest')).user)
  })

async function logIn() {
  const { user: logged } = await call('POST', '/login', { body: { user: name.value } })
  name.value = ''
  const kept = user === null ? ' The items that you viewed before are kept.' : ''
  setUser(logged)
  announce(`You are logged in as ${logged}.${kept}`)
  byId('items', HTMLElement).querySelector('button')?.focus({ preventScroll: true })
}

async function logOut() {
  stopWatching()
  await call('POST', '/logout')
  loggedOut()
  announce('You are logged out.')
  name.focus()
}

/** Shows the login form, or the user who is already logged in. */
export async function startAccount() {
  /** @param {HTMLElement} problem @param {() => Promise<void>} task */
  const act = (problem, task) => {
    notice(problem, '')
    change(task).catch((error) => notice(problem, messageFor(error)))
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    act(problem, logIn)
  })
  byId('log-out', HTMLButtonElement).addEventListener('click', () =>
    act(byId('account-problem', HTMLElement), logOut),
  )
  // Another tab of this browser has started a session.
  addEventListener('storage', ({ key, newValue }) => {
    if (key === HINT && newValue !== null) void readUser()
  })
  if (localStorage.getItem(HINT) !== null) await readUser()
}

/** Reads the user of this browser's session. Retries until the API answers. */
async function readUser(waitMs = 1_000) {
  const asked = user
  try {
    const answer = await callAsUser('GET', '/me')
    if (user === asked && !isChanging) setUser(answer.user)
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    if (error.status !== 401) setTimeout(readUser, waitMs, Math.min(waitMs * 2, 15_000))
    else if (user === undefined) localStorage.removeItem(HINT)
  }
}
