import { callAsUser, ensureSession, hasSession, isUser, onUser } from './account.js'
import { CallError, call, messageFor } from './api.js'
import { announce, byId, create, createSvg, notice, setText, showList } from './dom.js'
import { ago, counted } from './format.js'
import { poll } from './poll.js'
import { showSessions, startSessions } from './sessions.js'

/** Polling interval of the lists. Actions of the user refresh them at once. */
const EVERY_MS = 3_000
/** The API's maximum. The tiles need the counts of all items, and a race fills the lists temporarily. */
const LIMIT = 100
const POPULAR_SHOWN = 8
const RECENT_SHOWN = 12

const ITEMS = [
  'teapot',
  'lamp',
  'chair',
  'plant',
  'clock',
  'camera',
  'headphones',
  'backpack',
  'book',
  'globe',
  'guitar',
  'kite',
]

/** Last known views by item. @type {Map<string, number>} */
const views = new Map()

const items = byId('items', HTMLElement)
const problem = byId('shop-problem', HTMLElement)

/** @param {string} item */
function icon(item) {
  const href = ITEMS.includes(item) ? `/page/icons.svg#${item}` : ''
  return createSvg('svg', { 'aria-hidden': 'true', class: 'icon' }, createSvg('use', { href }))
}

function showItems() {
  showList(
    items,
    ITEMS,
    (item) => item,
    (item) => {
      const button = create(
        'button',
        { type: 'button', class: 'item' },
        icon(item),
        create('span', { class: 'name' }, item),
        create('span', { class: 'count' }),
      )
      button.addEventListener('click', () => view(item))
      return create('li', {}, button)
    },
    (row, item) => {
      const [, , count] = row.firstElementChild?.children ?? []
      if (count) setText(count, counted(views.get(item) ?? 0, 'view'))
    },
  )
}

/** Attempts to record a view. */
const MAX_ATTEMPTS = 5

/** Records a view. Retries use the same idempotency key, so that the view counts once. @param {string} item */
async function view(item) {
  notice(problem, '')
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join(
    '-',
  )
  let isSent = false
  let mayBeCounted = false
  for (let attempt = 1; ; attempt++) {
    try {
      await ensureSession()
      isSent = true
      const { views: count } = await callAsUser('POST', '/views', {
        body: { item },
        headers: { 'idempotency-key': key },
      })
      views.set(item, count)
      showItems()
      flash(item)
      announce(`${item}: ${counted(count, 'view')}`)
      notice(problem, '')
      lists.refresh()
      return
    } catch (error) {
      if (isSent && !hasSession()) return // the login form says why
      const mayRetry = error instanceof CallError && (error.status === 0 || error.status === 503)
      mayBeCounted ||= isSent && (!(error instanceof CallError) || error.mayHaveWritten)
      if (!mayRetry || attempt === MAX_ATTEMPTS) {
        const result = mayBeCounted ? 'may have been counted' : 'was not counted'
        notice(problem, `The view of the ${item} ${result}. ${messageFor(error)}`)
        return
      }
      notice(problem, `The view of the ${item} failed; retrying.`)
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt))
    }
  }
}

/** @param {string} item */
function flash(item) {
  const tile = items.children[ITEMS.indexOf(item)]?.firstElementChild
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return
  tile?.animate(
    { boxShadow: ['0 0 0 3px var(--accent)', '0 0 0 3px transparent'] },
    { duration: 700, easing: 'ease-out' },
  )
}

/** @param {{ item: string, views: number }[]} popular */
function showPopular(popular) {
  const highest = popular[0]?.views ?? 1
  showList(
    byId('popular', HTMLElement),
    popular.slice(0, POPULAR_SHOWN),
    ({ item }) => item,
    ({ item }) =>
      create(
        'li',
        {},
        create('span', { class: 'name' }, item),
        create('span', { class: 'count' }),
        create('span', { class: 'bar', 'aria-hidden': 'true' }),
      ),
    (row, { views: count }) => {
      const [, text, bar] = row.children
      if (text) setText(text, counted(count, 'view'))
      if (bar instanceof HTMLElement)
        bar.style.inlineSize = `${Math.max(1, (100 * count) / highest)}%`
    },
  )
  byId('popular-empty', HTMLElement).hidden = popular.length > 0
}

/**
 * Shows rows of a name and a relative time.
 *
 * @param {string} id
 * @param {{ key: string, name: string, at: number, note?: string }[]} rows
 */
function showTimes(id, rows) {
  const now = Date.now()
  showList(
    byId(id, HTMLElement),
    rows,
    ({ key }) => key,
    ({ name }) =>
      create('li', {}, create('span', { class: 'name' }, name), create('span', { class: 'count' })),
    (row, { at, note = '' }) => setText(row.children[1] ?? row, ago(now - at) + note),
  )
  byId(`${id}-empty`, HTMLElement).hidden = rows.length > 0
}

/** Shows one row per user, also for several sessions. @param {{ user: string | null, lastSeenAt: number }[]} sessions */
function showRecent(sessions) {
  const others = sessions.filter(({ user }) => !RACE_NAMES.test(user ?? ''))
  const rows = [...Map.groupBy(others, ({ user }) => user)].map(([user, own]) => {
    const who = user === null ? 'A guest' : isUser(user) ? `${user} (you)` : user
    const name = own.length > 1 ? `${who}, ${counted(own.length, 'browser')}` : who
    return { key: name, name, at: own[0]?.lastSeenAt ?? 0 }
  })
  showTimes('recent', rows.slice(0, RECENT_SHOWN))
}

// Users and items of a running race.
const RACE_NAMES = /^(?:demo-race|race-item)-\d+$/

async function readPopular() {
  const answer = await call('GET', `/items/popular?limit=${LIMIT}`)
  for (const { item, views: count } of answer.items) views.set(item, count)
  showItems()
  showPopular(
    /** @type {{ item: string, views: number }[]} */ (answer.items).filter(
      ({ item }) => !RACE_NAMES.test(item),
    ),
  )
}

async function readOwn() {
  if (!hasSession()) return
  const [recent, viewed, sessions] = await Promise.all([
    callAsUser('GET', `/recent?limit=${LIMIT}`),
    callAsUser('GET', '/me/views'),
    callAsUser('GET', '/me/sessions'),
  ])
  if (!hasSession()) return
  showRecent(recent.sessions)
  const own = /** @type {import('./sessions.js').Session[]} */ (sessions.sessions)
  const loggedInAt = own.find(({ current }) => current)?.loggedInAt ?? 0
  showTimes(
    'viewed',
    /** @type {{ item: string, viewedAt: number }[]} */ (viewed.items).map(
      ({ item, viewedAt }) => ({
        key: item,
        name: item,
        at: viewedAt,
        note: viewedAt < loggedInAt ? ', before login' : '',
      }),
    ),
  )
  showSessions(own)
}

const lists = {
  /** @type {() => void} */
  refresh() {},
}

export function startShop() {
  showItems()
  const { refresh } = poll(async () => {
    const results = await Promise.allSettled([readPopular(), readOwn()])
    const failed = results.find(({ status }) => status === 'rejected')
    // A 401 (the session has ended) must not lengthen the interval.
    if (failed?.status === 'rejected' && failed.reason?.status !== 401) throw failed.reason
  }, EVERY_MS)
  lists.refresh = () => void refresh()
  startSessions(lists.refresh)
  onUser((user) => {
    notice(problem, '')
    if (user === undefined) {
      // The next user of this browser must not see the data of this session.
      showTimes('viewed', [])
      showTimes('recent', [])
      showSessions([])
    }
    lists.refresh()
  })
}
