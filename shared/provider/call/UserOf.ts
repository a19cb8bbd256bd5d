/** Which of a client's users a request is for, where its dialect has a place to say so. */
import { Predicate } from "effect"
import * as JsonText from "../json/JsonText.ts"

const named = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

/** `user`, or `metadata.user_id` as messages have it, together with the client: users of two clients are never the same. */
export const userOf = (request: { readonly tenant: string; readonly body: Uint8Array }): string | undefined => {
  const members = JsonText.members(request.body)
  if (members === undefined) return undefined
  const metadata = JsonText.valueOf(request.body, members, "metadata")
  const user = named(JsonText.valueOf(request.body, members, "user")) ??
    (Predicate.hasProperty(metadata, "user_id") ? named(metadata["user_id"]) : undefined)
  return user === undefined ? undefined : `${request.tenant}\0${user}`
}
