/** The client's body as its provider gets it: byte for byte, but for the model's name and what others have signed. */
import * as Signature from "../dialects/conversation/Signature.ts"
import * as JsonText from "../json/JsonText.ts"
import type { Call } from "../call/Protocol.ts"

/**
 * `history` is the field that holds the conversation: reasoning of another provider, which this one would refuse, is
 * taken out of it. `changes` are made besides.
 */
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
