/** The idempotency key of a request, and a hash of the request that it identifies. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { boundaryOf } from "../../../shared/bounds/Form.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { OtherBody } from "../../../shared/records/KeyBindings.ts"
import { IdempotencyKeyReused } from "../errors/IngressError.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { isForm } from "./IncomingBody.ts"

const name = "idempotency-key"
const pattern = /^[\x20-\x7e]{1,255}$/

export const idempotencyKey = (headers: RequestHeaders): string | undefined | InvalidRequest => {
  const key = headers[name]
  return key === undefined || pattern.test(key)
    ? key
    : InvalidRequest.at(name, "must be 1 to 255 visible ASCII characters", "invalid_idempotency_key")
}

export const keyReused = <A, E>(effect: Effect.Effect<A, E | OtherBody>) =>
  Effect.catchTag(effect, "OtherBody", () => Effect.fail(new IdempotencyKeyReused()))

/** The header of an answer to an earlier request. */
export const replayed = { "idempotency-replayed": "true" } as const

/** The idempotency key of a request that creates something. */
export const keyIn = (headers: RequestHeaders): Effect.Effect<string | undefined, InvalidRequest> => {
  const key = idempotencyKey(headers)
  return key instanceof InvalidRequest ? Effect.fail(key) : Effect.succeed(key)
}

/** Maximum parts of a form. In a larger form, further boundaries count as content. */
const maxParts = 1_000

/** The parts of a form, without the boundary, which is another one in each request. */
const partsOf = (contentType: string, body: Uint8Array): ReadonlyArray<Uint8Array> => {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return [body]
  const delimiter = Buffer.from(`--${boundary}`)
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const parts: Array<Uint8Array> = []
  let start = 0
  for (let at = bytes.indexOf(delimiter); at !== -1 && parts.length < maxParts; at = bytes.indexOf(delimiter, start)) {
    parts.push(bytes.subarray(start, at))
    start = at + delimiter.length
  }
  return [...parts, bytes.subarray(start)]
}

/** A hash of what a request asks for. A path may name the model. */
export const hashOf = (model: string, headers: RequestHeaders, body: Uint8Array): string => {
  const hash = createHash("sha256").update(`${JSON.stringify(model)}\n`)
  const parts = isForm(headers) ? partsOf(headers["content-type"] ?? "", body) : [body]
  for (const part of parts) hash.update(`${part.length}\n`).update(part)
  return hash.digest("hex")
}
