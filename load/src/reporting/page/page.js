// Copies tables and saves the data. The page is complete without it, and the buttons are not there then.
document.addEventListener('DOMContentLoaded', () => {
  for (const button of document.querySelectorAll('button[hidden]')) button.hidden = false
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return
    const { copy, download, name } = target.dataset
    if (copy) void copyTable(copy).then((done) => say(target, done ? 'Copied' : 'Not copied'))
    if (download) save(document.getElementById(download)?.textContent ?? '', name ?? 'onetrip.json')
  })
})

/**
 * As lines of cells with tabs between them, which spreadsheets take.
 * @param {string} id
 * @returns {Promise<boolean>} whether it worked
 */
async function copyTable(id) {
  const table = /** @type {HTMLTableElement} */ (document.getElementById(id))
  const lines = [...table.rows].map((row) =>
    [...row.cells]
      .map((cell) => (cell.textContent ?? '').replaceAll(/\s+/g, ' ').trim())
      .join('\t'),
  )
  const text = `${lines.join('\n')}\n`
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // Not a secure context: plain HTTP on another machine.
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    return done
  }
}

/**
 * @param {string} text
 * @param {string} name
 */
function save(text, name) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000)
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} text
 */
function say(button, text) {
  const before = button.textContent
  button.textContent = text
  setTimeout(() => {
    button.textContent = before
  }, 1_500)
}
