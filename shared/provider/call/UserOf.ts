/** The end user of a request, as an id that the client has chosen. */
import { Predicate } from "effect"
import * as JsonText from "../json/JsonText.ts"

const named = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

/** `user`, or `metadata.user_id` in the messages dialect, with the tenant: two tenants never share a user. */
export const userOf = (request: { readonly tenant: string; readonly body: Uint8Array }): string | undefined => {
  const members = JsonText.members(request.body)
  if (members === undefined) return undefined
  const metadata = JsonText.valueOf(request.body, members, "metadata")
  const user = named(JsonText.valueOf(request.body, members, "user")) ??
    (Predicate.hasProperty(metadata, "user_id") ? named(metadata["user_id"]) : undefined)
  return user === undefined ? undefined : `${request.tenant}\0${user}`
}
