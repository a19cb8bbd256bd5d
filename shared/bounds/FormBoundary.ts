/** Finds the boundary between the parts of a form, by the same rules as Node's form parser. */
import { Result } from "effect"
import { MIMEType } from "node:util"

/** The boundary that a `content-type` names; `undefined` if none. */
export const boundaryOf = (contentType: string): string | undefined =>
  Result.getOrUndefined(Result.try(() => new MIMEType(contentType).params.get("boundary"))) || undefined
