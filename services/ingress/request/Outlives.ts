/** Whether a client asks for an answer that outlives its connection, and whether it can have one. */
import { Predicate } from "effect"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import type { KeyedRequest } from "../../../shared/records/KeyBindings.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { hashOf, idempotencyKey } from "./IdempotencyKey.ts"

/** An answer that outlives its connection. */
export interface Outlives {
  /**
   * What the client used to ask for it: the field `background`, the header `prefer`, or only an idempotency key. With only a key, the
   * client waits for the answer as usual.
   */
  readonly by: "background" | "respond-async" | "idempotency-key"
  /** Set if the request has an idempotency key. */
  readonly keyed: KeyedRequest | undefined
}

interface Asked {
  readonly operation: Operation
  readonly headers: RequestHeaders
  readonly model: string
  readonly request: RequestBody
  readonly body: Uint8Array
}

/** See RFC 7240. */
const prefersAsync = ({ prefer = "" }: RequestHeaders): boolean =>
  prefer.split(/[,;]/).some((preference) => preference.trim().toLowerCase() === "respond-async")

const isInBackground = ({ operation, request }: Asked): boolean =>
  operation.hasBackground === true && Predicate.hasProperty(request, "background") && request.background === true

/** Returns `undefined` for an answer that does not. Operations of the kind `task` have tasks of their own. */
export const outlives = (asked: Asked): Outlives | undefined | InvalidRequest => {
  const { body, headers, model, operation, request } = asked
  if (operation.kind === "task") return undefined
  const key = idempotencyKey(headers)
  if (key instanceof InvalidRequest) return key
  const keyed = key === undefined
    ? undefined
    : { operation: operation.name, key, bodyHash: hashOf(model, headers, body) }
  if (isInBackground(asked)) {
    return Predicate.hasProperty(request, "store") && request.store === false
      ? InvalidRequest.at("background", "requires that the response is stored: leave `store` out")
      : { by: "background", keyed }
  }
  if (prefersAsync(headers)) return { by: "respond-async", keyed }
  return keyed === undefined ? undefined : { by: "idempotency-key", keyed }
}
