/** The owner of what requests store: a key, or several keys in succession. */
export interface Owner {
  readonly id: string
  /** Random. What seals the owner's records derives from it, so deleting it deletes them. */
  readonly salt: string
}
