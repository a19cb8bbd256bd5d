/**
 * Seals texts that clients keep: clients can neither read nor change them, and each is valid for one tenant only.
 *
 * A sealed text is `gwc1:<key id>:<nonce, ciphertext and tag in base64url>`, by AES-256-GCM with the tenant's id as
 * additional data.
 */
import { Option } from "effect"
import { createCipheriv, createDecipheriv, hash, randomBytes } from "node:crypto"

const cipher = "aes-256-gcm"
const version = "gwc1"
const nonceBytes = 12
const tagBytes = 16

export interface Seal {
  readonly seal: (tenant: string, text: string) => string
  /** `None` if the text was changed, or sealed for another tenant or by another key. */
  readonly open: (tenant: string, sealed: string) => Option.Option<string>
}

/** Whether a gateway sealed this text. It is recognised by its three parts, which other services do not use. */
export const isOurs = (sealed: string): boolean => sealed.startsWith(`${version}:`) || sealed.split(":").length === 3

/** `key` has 32 bytes. */
export const make = (key: Uint8Array): Seal => {
  const keyId = hash("sha256", key, "hex").slice(0, 8)
  return {
    seal: (tenant, text) => {
      const nonce = randomBytes(nonceBytes)
      const encryption = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(tenant))
      const parts = [nonce, encryption.update(text, "utf8"), encryption.final(), encryption.getAuthTag()]
      return `${version}:${keyId}:${Buffer.concat(parts).toString("base64url")}`
    },
    open: (tenant, sealed) => {
      const [foundVersion, foundKey, encoded = "", ...more] = sealed.split(":")
      const bytes = Buffer.from(encoded, "base64url")
      if (foundVersion !== version || foundKey !== keyId || more.length > 0) return Option.none()
      // the decoder skips invalid characters
      if (bytes.length < nonceBytes + tagBytes || bytes.toString("base64url") !== encoded) return Option.none()
      const decryption = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
        .setAAD(Buffer.from(tenant))
        .setAuthTag(bytes.subarray(-tagBytes))
      try {
        const text = decryption.update(bytes.subarray(nonceBytes, -tagBytes))
        return Option.some(Buffer.concat([text, decryption.final()]).toString())
      } catch {
        return Option.none()
      }
    }
  }
}
