import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { root } from './repository.mjs'

/** @typedef {{ code: number | null, signal: NodeJS.Signals | null, asked: NodeJS.Signals | null }} End */

/**
 * Runs a program to its end, passing on the signals that this process gets.
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<End>}
 */
export function run(command, args, env) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
    /** @type {NodeJS.Signals | null} */
    let asked = null
    /** @param {NodeJS.Signals} signal */
    const pass = (signal) => {
      asked = signal
      // In a terminal, Ctrl-C reaches the child too.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    }
    /** @type {NodeJS.Signals[]} */
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    for (const signal of signals) process.on(signal, pass)
    const stop = () => {
      for (const signal of signals) process.off(signal, pass)
    }
    child.once('error', (error) => {
      // Also emitted for a signal that could not be sent to a program that did start.
      if (child.pid !== undefined) return
      stop()
      fail(error)
    })
    child.once('exit', (code, signal) => {
      stop()
      done({ code, signal, asked })
    })
  })
}

/**
 * Ends this process the way that its child ended.
 * @param {{ code: number | null, signal: NodeJS.Signals | null }} end
 */
export function endLike({ code, signal }) {
  if (signal === null) {
    process.exitCode = code ?? 1
    return
  }
  process.exitCode = 128 + (constants.signals[signal] ?? 0)
  process.kill(process.pid, signal)
}
