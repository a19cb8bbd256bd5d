/**
 * The seal of version 0.1, which binds a text to a tenant: `gwc1:<key id>:<encrypted text in base64url>`. Such texts stay
 * readable. Jobs without an owner, which come from an ingress or go to a worker of that version, still get this seal.
 */
import { type Array, Option } from "effect"
import { hash } from "node:crypto"
import { decrypt, encrypt } from "../../../shared/records/Cipher.ts"

const version = "gwc1"

export interface FormerSeal {
  readonly seal: (tenant: string, text: string) => string
  /** `None` if the text was changed, or sealed for another tenant or by another key. */
  readonly open: (tenant: string, sealed: string) => Option.Option<string>
}

/** Each key has 32 bytes. The first key seals; all of them open. */
export const make = (keys: Array.NonEmptyReadonlyArray<Uint8Array>): FormerSeal => {
  const idOf = (key: Uint8Array) => hash("sha256", key, "hex").slice(0, 8)
  return {
    seal: (tenant, text) =>
      `${version}:${idOf(keys[0])}:${encrypt(keys[0], tenant, Buffer.from(text)).toString("base64url")}`,
    open: (tenant, sealed) => {
      const [foundVersion, keyId, encoded = "", ...more] = sealed.split(":")
      const key = keys.find((key) => idOf(key) === keyId)
      const bytes = Buffer.from(encoded, "base64url")
      if (foundVersion !== version || key === undefined || more.length > 0) return Option.none()
      // the decoder skips invalid characters
      if (bytes.toString("base64url") !== encoded) return Option.none()
      return Option.map(decrypt(key, tenant, bytes), String)
    }
  }
}
