/**
 * The public keys of an issuer: from its key set over HTTP, found by discovery unless its address is known, or from a file.
 *
 * A key set is read when it is first needed, again when it lacks a key (at most twice a minute), and every ten minutes while it is in
 * use. If reading fails, the previous keys remain valid for a day.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from "jose"
import { readFile } from "node:fs/promises"
import { type Identity, isTrusted } from "../../../shared/keys/Identity.ts"

/** The keys cannot be read, so that no token of the issuer can be verified. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable"
}

const withinMs = 5_000
const refreshMs = 10 * 60_000
const cooldownMs = 30_000
const keptMs = 24 * 60 * 60_000
/** How long a failure is remembered, so that it is not repeated for every request. */
const failureMs = 2_000
/** How often a file is read again. */
const fileMs = 10_000
const maxBytes = 1024 * 1024

export type IssuerKeys = JWTVerifyGetKey

/** `now` is in milliseconds. */
export const make = (identity: Identity, now: () => number): IssuerKeys =>
  identity.jwksFile === undefined ? fromHttp(identity, now) : fromFile(identity.jwksFile, now)

const fromHttp = ({ issuer, jwksUri }: Identity, now: () => number): IssuerKeys => {
  let failedAt = -Infinity
  let refreshedAt = now()
  const read = async (url: string, options: RequestInit): Promise<Response> => {
    if (now() - failedAt < failureMs) throw new KeysUnavailable()
    try {
      return new Response(await bodyOf(await fetch(url, options)))
    } catch (cause) {
      failedAt = now()
      throw new KeysUnavailable("the keys of an issuer cannot be read", { cause })
    }
  }

  const discover = async (): Promise<string> => {
    if (jwksUri !== undefined) return jwksUri
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
    const response = await read(url, { redirect: "error", signal: AbortSignal.timeout(withinMs) })
    const found = await response.json() as { readonly issuer?: unknown; readonly jwks_uri?: unknown }
    if (found.issuer === issuer && typeof found.jwks_uri === "string" && isTrusted(found.jwks_uri)) {
      return found.jwks_uri
    }
    failedAt = now()
    throw new KeysUnavailable("the issuer's discovery document is of another issuer, or names no keys")
  }

  const open = async () =>
    createRemoteJWKSet(new URL(await discover()), {
      timeoutDuration: withinMs,
      cooldownDuration: cooldownMs,
      cacheMaxAge: keptMs,
      [customFetch]: read
    })

  let opening: ReturnType<typeof open> | undefined
  const opened = () =>
    opening ??= open().catch((cause) => {
      opening = undefined
      throw cause
    })

  return async (header, token) => {
    const keys = await opened()
    if (now() - refreshedAt > refreshMs) {
      refreshedAt = now()
      // the previous keys stay valid if this fails
      if (keys.jwks() !== undefined) void keys.reload().catch(() => undefined)
    }
    return await keys(header, token)
  }
}

/** The body of an answer, which must be small. */
const bodyOf = async (response: Response): Promise<Uint8Array<ArrayBuffer>> => {
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  const pieces: Array<Uint8Array> = []
  let size = 0
  for await (const piece of response.body ?? []) {
    size += piece.length
    if (size > maxBytes) throw new Error("too large")
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

const fromFile = (path: string, now: () => number): IssuerKeys => {
  let readAt = -Infinity
  /** The keys, known or being read. Requests that arrive during a read wait for it. */
  let keys: Promise<IssuerKeys> | undefined
  const read = async (former: Promise<IssuerKeys> | undefined): Promise<IssuerKeys> => {
    try {
      const text = await readFile(path, { encoding: "utf8", signal: AbortSignal.timeout(withinMs) })
      return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
    } catch (cause) {
      if (former !== undefined) return await former
      keys = undefined
      throw new KeysUnavailable("the file with an issuer's keys cannot be read", { cause })
    }
  }
  return async (header, token) => {
    if (keys === undefined || now() - readAt > fileMs) {
      readAt = now()
      keys = read(keys)
    }
    return (await keys)(header, token)
  }
}
