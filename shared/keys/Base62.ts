/** Makes texts of digits and letters, for secrets and ids. */
import { randomInt } from "node:crypto"

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

export const random = (length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("")

/** One character for each byte. Not reversible. */
export const encode = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("")
