// Formats numbers and messages for the page. Only this file rounds figures.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const threeDigits = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })

/** `31,809`, `12.4`, `0.08`: whole numbers from 100, else three significant digits. @param {number} value */
export const figure = (value) => (Math.abs(value) >= 100 ? whole : threeDigits).format(value)

/** `312 µs`, `1.93 ms`, `2.5 s`. @param {number} microseconds */
export function duration(microseconds) {
  if (microseconds < 999.5) return `${figure(Math.round(microseconds))} µs`
  if (microseconds < 999_500) return `${figure(microseconds / 1000)} ms`
  return `${figure(microseconds / 1_000_000)} s`
}

/** `no connections`, `1 connection`, `1,204 connections`. @param {number} count @param {string} noun */
export const counted = (count, noun) =>
  `${count === 0 ? 'no' : whole.format(count)} ${noun}${count === 1 ? '' : 's'}`

/** `just now`, `12 s ago`, `5 min ago`, `3 h ago`, `2 days ago`. @param {number} milliseconds */
export function ago(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  if (seconds < 5) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${counted(Math.floor(seconds / 86_400), 'day')} ago`
}

/** `45 s`, `12 min`, `3 h 4 min`, `2 days 3 h`. @param {number} seconds */
export function uptime(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours} h ${minutes % 60} min`
  return `${counted(Math.floor(hours / 24), 'day')} ${hours % 24} h`
}

/** `1.52 MB`. @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 999_500) return `${figure(bytes / 1000)} kB`
  return bytes < 999_500_000 ? `${figure(bytes / 1e6)} MB` : `${figure(bytes / 1e9)} GB`
}

/** Formats a message of the API as a sentence, with `user` instead of `body/user`. @param {string} message */
export function sentence(message) {
  const words = message.replace(/^body\//, '')
  const text = words.charAt(0).toUpperCase() + words.slice(1)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
