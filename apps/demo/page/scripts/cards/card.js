import { isLoggedIn } from '../account.js'
import { messageFor } from '../api.js'
import { announce, byId, notice } from '../dom.js'

/**
 * The card with this heading, whose form runs an action.
 *
 * @param {string} titleId
 * @param {(form: FormData) => Promise<string>} action Returns the text to announce.
 */
export function card(titleId, action) {
  const section = byId(titleId, HTMLElement).parentElement
  const form = section?.querySelector('form')
  const problem = section?.querySelector('.notice')
  if (!form || !(problem instanceof HTMLElement)) {
    throw new Error(`index.html: the card of #${titleId} has no form or no notice`)
  }
  const clear = () => notice(problem, '')
  /** Runs a task and shows its error in the card. @param {() => Promise<void>} task */
  const attempt = async (task) => {
    clear()
    try {
      await task()
    } catch (error) {
      if (isLoggedIn()) notice(problem, messageFor(error))
    }
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const data = new FormData(form, event.submitter)
    void attempt(async () => announce(await action(data)))
  })
  return { form, attempt, clear }
}
