/** Ids of durable tasks: hard to guess, and always the same for the same idempotency key. */
import { hash } from "node:crypto"
import * as Base62 from "../../../shared/keys/Base62.ts"

export const pattern = /^task_[0-9A-Za-z]{32}$/

export const random = (): string => `task_${Base62.random(32)}`

/** The id for one owner's idempotency key and one operation. */
export const idempotent = (operation: string, ownerId: string, key: string): string =>
  `task_${Base62.encode(hash("sha256", JSON.stringify([operation, ownerId, key]), "buffer"))}`
