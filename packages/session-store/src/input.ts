import { StoreError } from './errors.ts'

/** The longest user or item, in characters (Unicode code points). */
export const MAX_NAME_LENGTH = 128

/**
 * What a user or item consists of, as the source of a regular expression with the `u` flag: no control
 * characters, none that reverse the direction of text (they make a list show something else than it
 * holds), no halves of surrogate pairs (which UTF-8 cannot carry), and no U+FFFD (which is what decoders
 * make of bytes that are no UTF-8). Without \p{…}, which not every reader of a JSON Schema knows.
 */
export const NAME_PATTERN =
  '^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufffd]+$'

const namePattern = new RegExp(NAME_PATTERN, 'u')

/** @throws StoreError `ONETRIP_INVALID_INPUT`, naming the field. */
export function checkName(field: 'user' | 'item', value: string): void {
  // A string has at least as many UTF-16 units as characters, so most need no counting.
  const tooLong = value.length > MAX_NAME_LENGTH && [...value].length > MAX_NAME_LENGTH
  if (tooLong || !namePattern.test(value)) {
    throw new StoreError(
      'ONETRIP_INVALID_INPUT',
      `${field} must have 1 to ${MAX_NAME_LENGTH} characters and no control characters`,
    )
  }
}

/** @throws StoreError `ONETRIP_INVALID_INPUT` unless it is a whole number from 1 to `most`. */
export function checkLimit(limit: number, most = 1_000): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    throw new StoreError('ONETRIP_INVALID_INPUT', `limit must be a whole number from 1 to ${most}`)
  }
}
