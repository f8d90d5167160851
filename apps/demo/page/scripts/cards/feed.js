import { callAsUser, isLoggedIn } from '../account.js'
import { CallError } from '../api.js'
import { byId, create, setText, showList } from '../dom.js'
import { ago } from '../format.js'
import { card } from './card.js'

const PAGE = 5

/** @typedef {{ id: number, user: string, text: string, postedAt: number }} Entry */

const list = byId('feed', HTMLElement)
const older = byId('feed-older', HTMLButtonElement)

/** @param {readonly Entry[]} entries */
function show(entries) {
  const now = Date.now()
  showList(
    list,
    entries,
    ({ id }) => String(id),
    ({ user, text }) =>
      create(
        'li',
        {},
        create('span', { class: 'line' }, create('span', { class: 'name' }, user), ` ${text}`),
        create('span', { class: 'count' }),
      ),
    (row, { postedAt }) => setText(row.children[1] ?? row, ago(now - postedAt)),
  )
  list.hidden = entries.length === 0
}

/** @param {() => void} refresh Reads the cards again. @returns {import('../cards.js').Card} */
export function feedCard(refresh) {
  /** Newest first, without gaps. @type {Entry[]} */
  let entries = []
  /** Cursor of the page after the last entry. @type {string | undefined} */
  let cursor

  /** @param {string} [from] @returns {Promise<{ entries: Entry[], nextCursor?: string }>} */
  const page = (from) =>
    callAsUser('GET', `/feed?limit=${PAGE}${from === undefined ? '' : `&cursor=${from}`}`)

  async function read() {
    const newest = await page()
    if (!isLoggedIn()) return
    const last = newest.entries.at(-1)?.id ?? 0
    const known = entries.filter(({ id }) => id < last)
    // More than a page of new entries: drop the older ones, so that the list has no gap.
    if (known[0]?.id !== last - 1) {
      known.length = 0
      cursor = newest.nextCursor
    }
    entries = [...newest.entries, ...known]
    showAll()
  }
  function showAll() {
    show(entries)
    byId('feed-empty', HTMLElement).hidden = entries.length > 0
    older.hidden = cursor === undefined
  }
  const { form, attempt, clear } = card('feed-title', async (data) => {
    const line = /** @type {HTMLInputElement} */ (form.elements.namedItem('text'))
    const text = String(data.get('text'))
    line.value = '' // before the response, so that the user can type the next text
    try {
      await callAsUser('POST', '/feed', { body: { text: text.trim() } })
    } catch (error) {
      line.value ||= text
      if (!(error instanceof CallError) || error.code !== 'ONETRIP_OUTCOME_UNKNOWN') throw error
      const message =
        'Redis did not answer. Your text may have been posted: check the feed before you post it again.'
      throw new CallError(error.status, '', message)
    }
    refresh()
    return 'Your text is posted.'
  })
  older.addEventListener('click', () =>
    attempt(async () => {
      const from = cursor
      const next = await page(from)
      if (cursor !== from) return // a refresh has replaced the list
      entries.push(...next.entries)
      cursor = next.nextCursor
      showAll()
      list.scrollTop = list.scrollHeight
      if (older.hidden) list.focus()
    }),
  )
  return {
    read,
    clear() {
      clear()
      entries = []
      cursor = undefined
      show(entries)
      older.hidden = true
      byId('feed-empty', HTMLElement).hidden = true
    },
  }
}
