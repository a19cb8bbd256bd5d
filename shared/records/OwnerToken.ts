/** Names an owner in keys and subjects without revealing the owner's id. */
import { hash } from "node:crypto"
import type { Owner } from "../contract/Owner.ts"

/** 132 bits of a SHA-256 hash, in base64url. */
export const digest = (...parts: ReadonlyArray<string>): string =>
  hash("sha256", parts.join("\0"), "base64url").slice(0, 22)

export const ownerToken = ({ id, salt }: Owner): string => digest(id, salt)
