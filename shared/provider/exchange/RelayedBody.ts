/** Edits a relayed body: the model's name and the reasoning signed by other providers. Every other byte stays unchanged. */
import * as Signature from "../dialects/conversation/Signature.ts"
import * as JsonText from "../json/JsonText.ts"
import type { Call } from "../call/Protocol.ts"

/** Makes `changes`, and removes the reasoning of other providers, which this one would reject, from the field `history`. */
export const edit = (
  { body }: Call,
  members: ReadonlyArray<JsonText.Member>,
  changes: Map<string, unknown>,
  history: string | undefined
): Uint8Array => {
  if (history !== undefined && Signature.mayHoldWrapped(body)) {
    changes.set(history, Signature.withoutWrapped(JsonText.valueOf(body, members, history)))
  }
  return changes.size === 0 ? body : JsonText.setMembers(body, members, changes)
}
