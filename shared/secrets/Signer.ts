/** Signs content with HMAC-SHA256 for one purpose, with keys that derive from `GATEWAY_SECRET`. */
import { Array, Effect, Redacted } from "effect"
import { createHmac, timingSafeEqual } from "node:crypto"
import { deriveKeys, type SecretUnusable } from "./GatewaySecret.ts"

export interface Signer {
  /** The signature of the content: 43 characters of base64url. */
  readonly sign: (content: string | Uint8Array) => string
  /** Whether one of the secrets has signed the content. */
  readonly isSigned: (content: string | Uint8Array, signature: string) => boolean
}

export const make = (purpose: string): Effect.Effect<Signer, SecretUnusable> =>
  Effect.map(deriveKeys(purpose), (keys) => {
    const signers = Array.map(
      keys,
      (key) => (content: string | Uint8Array) =>
        createHmac("sha256", Redacted.value(key)).update(content).digest("base64url")
    )
    return {
      sign: signers[0],
      isSigned: (content, signature) => {
        const given = Buffer.from(signature)
        return signers.some((sign) => {
          const right = Buffer.from(sign(content))
          return given.length === right.length && timingSafeEqual(given, right)
        })
      }
    }
  })
