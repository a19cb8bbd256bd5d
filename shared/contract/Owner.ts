/** The owner of what requests store: a key, or several keys in succession. */
export interface Owner {
  readonly id: string
  /** Random. The keys that seal the owner's records derive from the salt, so deleting it makes the records unreadable. */
  readonly salt: string
}

/** The tenant of all copies of requests for shadow models. Ids of API keys begin with `key_`. */
export const shadowTenant = "shadow"

/** Whether the answer is discarded, so that nothing of it may be stored. The request may still read what its owner has stored. */
export const isDiscarded = ({ tenant }: { readonly tenant: string }): boolean => tenant === shadowTenant
