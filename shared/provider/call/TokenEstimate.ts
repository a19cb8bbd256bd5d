/** Estimates a request's tokens from its body. */
import type { Operation } from "../../contract/Operation.ts"
import { tokenDemand, tokenEstimate } from "../../contract/TokenEstimate.ts"
import * as JsonText from "../json/JsonText.ts"

export const of = ({ body, operation }: { readonly body: Uint8Array; readonly operation: Operation }): number =>
  tokenEstimate(operation, body.length, JsonText.fieldsOf(body))

/** The tokens by which a provider may judge the request: it counts an answer's limit, however unlikely such a long answer is. */
export const most = ({ body, operation }: Parameters<typeof of>[0]): number => {
  const { stated, tokens } = tokenDemand(operation, body.length, JsonText.fieldsOf(body))
  return Math.max(tokens, stated?.tokens ?? 0)
}
