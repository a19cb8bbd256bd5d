/** Names an owner in keys and subjects, without telling who it is. */
import { hash } from "node:crypto"
import type { Owner } from "../contract/Owner.ts"

/** Base64url of 132 bits. */
export const digest = (...parts: ReadonlyArray<string>): string =>
  hash("sha256", parts.join("\0"), "base64url").slice(0, 22)

export const ownerToken = ({ id, salt }: Owner): string => digest(id, salt)
