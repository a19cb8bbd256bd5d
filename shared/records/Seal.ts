/**
 * Seals what the gateway stores for an owner, or gives to its clients to keep. Only the gateway can open it, only as the same record of
 * the same owner, and only while the owner's salt exists.
 *
 * The sealed form is a version, the id of the secret, and the record encrypted by a key for the owner. That key derives from
 * `GATEWAY_SECRET` and the salt. If the variable lists several secrets, the first seals and all of them open.
 */
import { type Array, Effect, Option, Redacted } from "effect"
import { hash, hkdfSync } from "node:crypto"
import type { Owner } from "../contract/Owner.ts"
import { deriveKeys } from "../secrets/GatewaySecret.ts"
import { decrypt, encrypt, encryptionBytes } from "./Cipher.ts"

/** Identifies a record, or a part of it. */
export interface Place {
  readonly owner: Owner
  /** For example `response`. */
  readonly kind: string
  /** Unique within the kind; empty if the record is not stored here. */
  readonly id: string
  /** The part's number, from 0. */
  readonly page: number
}

export interface Seal {
  readonly seal: (place: Place, bytes: Uint8Array) => Uint8Array
  /** Opens sealed bytes; `None` if they were changed, or sealed for another place, or with a secret that is no longer listed. */
  readonly open: (place: Place, sealed: Uint8Array) => Option.Option<Uint8Array>
}

const version = 2
const secretIdBytes = 4
const headBytes = 1 + secretIdBytes

/** How many bytes sealing adds. */
export const sealBytes = headBytes + encryptionBytes

/** Maximum number of owners whose keys stay in memory: deriving one takes as long as sealing a few kilobytes. */
const maxDerived = 1_000

interface Secret {
  readonly id: Buffer
  readonly keyOf: (owner: Owner) => Uint8Array
}

const toSecret = (master: Uint8Array): Secret => {
  const derived = new Map<string, Uint8Array>()
  return {
    id: hash("sha256", master, "buffer").subarray(0, secretIdBytes),
    keyOf: ({ salt }) => {
      const known = derived.get(salt)
      if (known !== undefined) return known
      const key = new Uint8Array(hkdfSync("sha256", master, Buffer.from(salt, "base64url"), "owner", 32))
      const [oldest] = derived.size < maxDerived ? [] : derived.keys()
      if (oldest !== undefined) derived.delete(oldest)
      derived.set(salt, key)
      return key
    }
  }
}

const aboutOf = ({ id, kind, owner, page }: Place): string => JSON.stringify([owner.id, kind, id, page])

/** `keys`: the secrets, of 32 bytes each. The first one seals; all of them open. */
export const make = (keys: Array.NonEmptyReadonlyArray<Uint8Array>): Seal => {
  const secrets = keys.map(toSecret)
  const first = toSecret(keys[0])
  return {
    seal: (place, bytes) =>
      Buffer.concat([Buffer.of(version), first.id, encrypt(first.keyOf(place.owner), aboutOf(place), bytes)]),
    open: (place, sealed) => {
      const secretId = sealed.subarray(1, headBytes)
      const secret = secrets.find(({ id }) => id.equals(secretId))
      return secret === undefined || sealed[0] !== version
        ? Option.none()
        : decrypt(secret.keyOf(place.owner), aboutOf(place), sealed.subarray(headBytes))
    }
  }
}

const textVersion = "gwc2"

/** A sealed text for clients: `gwc2:<kind>:<sealed form in base64url>`. */
export const sealText = (seal: Seal, place: Place, text: string): string =>
  `${textVersion}:${place.kind}:${Buffer.from(seal.seal(place, Buffer.from(text))).toString("base64url")}`

export const openText = (seal: Seal, place: Place, sealed: string): Option.Option<string> => {
  const [foundVersion, kind, encoded = "", ...more] = sealed.split(":")
  const bytes = Buffer.from(encoded, "base64url")
  // compared, because the decoder silently skips invalid characters
  const isWhole = more.length === 0 && bytes.toString("base64url") === encoded
  if (foundVersion !== textVersion || kind !== place.kind || !isWhole) return Option.none()
  return Option.map(seal.open(place, bytes), (text) => Buffer.from(text).toString())
}

/** Whether a gateway has sealed this text, which shows in its three parts: other services do not use that form. */
export const isSealedText = (text: string): boolean => text.startsWith("gwc1:") || text.split(":").length === 3

/** The seal of this gateway. Reads `GATEWAY_SECRET`. */
export const fromSecret = Effect.map(
  deriveKeys("records"),
  ([first, ...former]) => make([Redacted.value(first), ...former.map(Redacted.value)])
)
