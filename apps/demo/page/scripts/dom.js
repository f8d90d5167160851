/**
 * The element with this id.
 *
 * @template {Element} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 * @throws {Error} If `index.html` has no such element.
 */
export function byId(id, kind) {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`)
  return element
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function createSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/**
 * Sets the text of an element if it differs: screen readers and the browser ignore unchanged text.
 *
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/**
 * Shows a text in an element, or hides the element for an empty one.
 *
 * @param {HTMLElement} element
 * @param {string} text
 */
export function notice(element, text) {
  setText(element, text)
  element.hidden = text === ''
}

/**
 * Makes a button ignore clicks, or accept them again. Unlike `disabled`, it keeps the focus.
 *
 * @param {HTMLButtonElement} button
 * @param {boolean} isBlocked
 */
export function block(button, isBlocked) {
  if (isBlocked) button.setAttribute('aria-disabled', 'true')
  else button.removeAttribute('aria-disabled')
}

/**
 * Enables a button, and the button in the header of the page that scrolls to it and does the same.
 *
 * @param {HTMLButtonElement} button
 * @param {string} heroId
 * @param {() => void} run Not called while the button is blocked.
 */
export function startButton(button, heroId, run) {
  const hero = byId(heroId, HTMLButtonElement)
  const runUnlessBlocked = () => {
    if (button.getAttribute('aria-disabled') !== 'true') run()
  }
  button.addEventListener('click', runUnlessBlocked)
  hero.addEventListener('click', () => {
    button.scrollIntoView()
    runUnlessBlocked()
  })
  button.disabled = false
  hero.disabled = false
}

/** @type {WeakMap<Element, Map<string, HTMLElement>>} */
const rowsOf = new WeakMap()

/**
 * Shows a list as the children of an element. Existing entries keep their elements, and so the focus.
 *
 * @template Entry
 * @param {Element} parent
 * @param {readonly Entry[]} entries
 * @param {(entry: Entry) => string} keyOf Unique in the list.
 * @param {(entry: Entry) => HTMLElement} build
 * @param {(element: HTMLElement, entry: Entry) => void} update Also called after `build`.
 */
export function showList(parent, entries, keyOf, build, update) {
  const before = rowsOf.get(parent) ?? new Map()
  const after = new Map()
  entries.forEach((entry, index) => {
    const key = keyOf(entry)
    const element = before.get(key) ?? build(entry)
    after.set(key, element)
    update(element, entry)
    if (parent.children[index] !== element)
      parent.insertBefore(element, parent.children[index] ?? null)
  })
  while (parent.children.length > entries.length) parent.lastElementChild?.remove()
  rowsOf.set(parent, after)
}

/** Announces a text to screen readers. @param {string} text */
export function announce(text) {
  byId('announcements', HTMLElement).textContent = text
}
