/** The owner of what requests store: a key, or several keys in succession. */
export interface Owner {
  readonly id: string
  /** Random. The keys that seal the owner's records derive from the salt, so deleting it makes the records unreadable. */
  readonly salt: string
}
