import { isLoggedIn } from '../account.js'
import { wordsFor } from '../api.js'
import { announce, byId, notice } from '../dom.js'

/**
 * The card with this heading, whose form runs an action.
 *
 * @param {string} titleId
 * @param {(form: FormData) => Promise<string>} action Returns what to announce. One at a time.
 */
export function card(titleId, action) {
  const section = byId(titleId, HTMLElement).parentElement
  const form = section?.querySelector('form')
  const problem = section?.querySelector('.notice')
  if (!form || !(problem instanceof HTMLElement)) {
    throw new Error(`index.html: the card of #${titleId} has no form or no notice`)
  }
  const clear = () => notice(problem, '')
  /** Runs a task and shows in the card why it failed. @param {() => Promise<void>} task */
  const attempt = async (task) => {
    clear()
    try {
      await task()
    } catch (error) {
      if (isLoggedIn()) notice(problem, wordsFor(error))
    }
  }
  let isBusy = false
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (isBusy) return
    isBusy = true
    await attempt(async () => announce(await action(new FormData(form, event.submitter))))
    isBusy = false
  })
  return { form, attempt, clear }
}
