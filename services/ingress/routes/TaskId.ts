/** Names for durable tasks: hard to guess, and for requests with an idempotency key always the same. */
import { hash, randomBytes } from "node:crypto"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** `task_` and 32 base62 characters, from 32 bytes. */
const idOf = (bytes: Uint8Array): string =>
  `task_${Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("")}`

export const pattern = /^task_[0-9A-Za-z]{32}$/

export const random = (): string => idOf(randomBytes(32))

/** Of one tenant's key for one operation. */
export const idempotent = (operation: string, tenant: string, key: string): string =>
  idOf(hash("sha256", JSON.stringify([operation, tenant, key]), "buffer"))
