/** Tells a server that the last message of a request is the beginning of its answer. */
import type { Continues } from "../../../catalogue/Model.ts"
import * as Json from "../../json/Json.ts"
import * as JsonText from "../../json/JsonText.ts"

/** The members of the last message, and of the request. */
const marks: Readonly<
  Record<Continues, { readonly message?: object; readonly request?: Readonly<Record<string, unknown>> }>
> = {
  assistant: {},
  prefix: { message: { prefix: true } },
  partial: { message: { partial: true } },
  continueFinalMessage: { request: { continue_final_message: true, add_generation_prompt: false } }
}

/** A request without a list of messages is continued as it is. */
export const mark = (body: Uint8Array, continues: Continues): Uint8Array => {
  const members = JsonText.members(body) ?? []
  const messages = JsonText.valueOf(body, members, "messages")
  const { message, request = {} } = marks[continues]
  if (!Array.isArray(messages)) return body
  const changes = new Map(Object.entries(request))
  if (message !== undefined) {
    changes.set("messages", [...messages.slice(0, -1), { ...Json.fields(messages.at(-1)), ...message }])
  }
  return changes.size === 0 ? body : JsonText.setMembers(body, members, changes)
}
