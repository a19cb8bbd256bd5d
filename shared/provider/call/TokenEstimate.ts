/** Estimates a request's tokens from its body. */
import type { Operation } from "../../contract/Operation.ts"
import { tokenEstimate } from "../../contract/TokenEstimate.ts"
import * as JsonText from "../json/JsonText.ts"

export const of = ({ body, operation }: { readonly body: Uint8Array; readonly operation: Operation }): number =>
  tokenEstimate(operation, body.length, JsonText.fieldsOf(body))
