/** Finds the session of a request: from the ids that the request names, or else by its opening, which a session's requests share. */
import { Predicate } from "effect"
import { hash } from "node:crypto"
import type { Member } from "../../bounds/JsonMembers.ts"
import type { Sticky } from "../../catalogue/Model.ts"
import { sessionHeaders } from "../../contract/ChatHeaders.ts"
import * as Json from "../json/Json.ts"
import * as JsonText from "../json/JsonText.ts"
import type { Call } from "./Protocol.ts"

type Request = Pick<Call, "body" | "headers" | "tenant">

/** The value of a member of the body, by name. */
type ValueOf = (name: string) => unknown

const metadataUser = (valueOf: ValueOf) => Json.fields(valueOf("metadata"))["user_id"]
const user = (valueOf: ValueOf) => valueOf("user") ?? valueOf("safety_identifier")

/** The places of a session's or a user's id; the first one present counts. */
const fields = {
  user: [metadataUser, user],
  session: [
    (valueOf: ValueOf) => valueOf("prompt_cache_key"),
    metadataUser,
    (valueOf: ValueOf) => valueOf("previous_response_id"),
    user
  ]
}

/** The members of all dialects that hold the instructions, and those that hold the messages. */
const instructions = ["instructions", "system", "systemInstruction", "system_instruction"]
const conversations = ["messages", "contents", "input"]

/** The session's id: 43 characters, unique to the tenant; `undefined` if the request names no user, or has no text. */
export const sessionOf = (request: Request, sticky: Exclude<Sticky, "none">): string | undefined => {
  const session = (sticky === "session" ? inHeaders(request) : undefined) ?? inBody(request, sticky)
  return session === undefined ? undefined : hash("sha256", `${request.tenant}\0${session}`, "base64url")
}

const inHeaders = ({ headers }: Request): string | undefined =>
  headers && sessionHeaders.map((name) => headers[name]).find((value) => value !== undefined && value !== "")

const inBody = ({ body }: Request, sticky: Exclude<Sticky, "none">): string | undefined => {
  const members = JsonText.members(body)
  if (members === undefined) return undefined
  for (const field of fields[sticky]) {
    const value = field((name) => JsonText.valueOf(body, members, name))
    if (typeof value === "string" && value !== "") return value
  }
  return sticky === "user" ? undefined : openingOf(body, members)
}

/** The texts of the instructions, and of the messages up to the first one that is not an instruction. */
const openingOf = (body: Uint8Array, members: ReadonlyArray<Member>): string | undefined => {
  const texts = members.flatMap((member) =>
    instructions.includes(member.name) ? textsIn(JsonText.bytesOf(body, member)) : []
  )
  const list = members.findLast(({ name }) => conversations.includes(name))
  for (const item of list === undefined ? [] : JsonText.items(body, list)) {
    texts.push(...textsIn(item))
    const role = JsonText.valueOf(item, JsonText.members(item) ?? [], "role")
    if (role !== "system" && role !== "developer") break
  }
  return texts.length === 0 ? undefined : texts.join("\0")
}

/** Of a longer text only the beginning is used, in bytes. */
const maxBytes = 64 * 1024

/** The texts in a member. Nothing else, because marks for a cache move from message to message. */
const textsIn = (json: Uint8Array): ReadonlyArray<string> => {
  const isWhole = json.length <= maxBytes
  const text = Json.decodeText(isWhole ? json : json.subarray(0, maxBytes))
  return isWhole ? textsOf(Json.parse(text)) : [text]
}

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(textsOf)
  return Predicate.isReadonlyObject(value) ? ["content", "parts", "text"].flatMap((name) => textsOf(value[name])) : []
}
