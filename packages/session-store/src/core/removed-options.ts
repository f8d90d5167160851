/**
 * Options of earlier versions, and what replaces them. An option that is still set throws with this text, so that
 * nothing is lost in silence. To be removed with version 0.3.
 */
export const removedOptions: Readonly<Record<string, string>> = {}
