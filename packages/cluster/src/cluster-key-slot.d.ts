declare module 'cluster-key-slot' {
  /** The slot (0 to 16,383) of a key, by its hash tag if it has one. */
  export default function calculateSlot(key: string): number
}
