/** Estimates a request's tokens from its body. */
import type { Member } from "../../bounds/JsonMembers.ts"
import type { Operation } from "../../contract/Operation.ts"
import { tokenEstimate } from "../../contract/TokenEstimate.ts"
import * as JsonText from "../json/JsonText.ts"

export const of = ({ body, operation }: { readonly body: Uint8Array; readonly operation: Operation }): number => {
  let members: ReadonlyArray<Member> | undefined
  return tokenEstimate(operation, body.length, (name) => {
    members ??= JsonText.members(body) ?? []
    return JsonText.valueOf(body, members, name)
  })
}
