const MAX_WAIT_MS = 15_000

/**
 * Listens to server-sent events. Only while the page is visible, because a browser has few connections per
 * host. Reconnects after 1 s, then 2 s, up to 15 s.
 *
 * @param {string} url
 * @param {readonly string[]} names
 * @param {(event: any) => void} onEvent
 * @returns {() => void} Stops listening.
 */
export function listen(url, names, onEvent) {
  /** @type {EventSource | undefined} */
  let source
  let timer = 0
  let waitMs = 1_000

  const close = () => {
    clearTimeout(timer)
    source?.close()
    source = undefined
  }
  const open = () => {
    close()
    if (document.hidden) return
    source = new EventSource(url)
    source.onerror = () => {
      close()
      timer = setTimeout(open, waitMs)
      waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
    }
    for (const name of names) {
      source.addEventListener(name, ({ data }) => {
        waitMs = 1_000
        onEvent({ name, data: JSON.parse(data) })
      })
    }
  }
  document.addEventListener('visibilitychange', open)
  open()
  return () => {
    document.removeEventListener('visibilitychange', open)
    close()
  }
}
