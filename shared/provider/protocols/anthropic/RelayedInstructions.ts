/**
 * Moves messages of the role `system` in relayed bodies to the front for the generations of Claude that refuse the role. Claude Code
 * decides by the model's name whether to send them, and an alias tells it nothing.
 */
import type { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as Json from "../../json/Json.ts"

type Message = Json.Fields

/** The role as JSON writers put it, without and with a space. */
const marks = [`"role":"system"`, `"role": "system"`]

const isSystem = ({ role }: Message): boolean => role === "system"

const blocksOf = (content: unknown): ReadonlyArray<unknown> =>
  typeof content === "string" ? [{ type: "text", text: content }] : Json.list(content)

const isText = (block: unknown): boolean => Json.fields(block)["type"] === "text"

/** Changes nothing where instructions add or remove tools: the provider's error says more than an answer without them. */
export const moveToFront = (body: RelayedBody): void => {
  if (!body.mentions(marks)) return
  const messages = Json.list(body.exactValueOf("messages")).map(Json.fields)
  const lastOfUser = messages.findLastIndex(({ role }) => role === "user")
  // a later message of the user takes some instructions back
  const isCleared = ({ clear_at: end }: Message, index: number) => end === "next_user_message" && index < lastOfUser
  const moved = messages.flatMap((message, index) =>
    isSystem(message) && !isCleared(message, index) ? blocksOf(message["content"]) : []
  )
  if (!messages.some(isSystem) || !moved.every(isText)) return
  body.set("messages", messages.filter((message) => !isSystem(message)))
  if (moved.length > 0) body.set("system", [...blocksOf(body.exactValueOf("system")), ...moved])
}
