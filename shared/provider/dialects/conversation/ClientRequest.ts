/** Decodes a client's request to canonical conversations and records the losses. */
import { Effect, Predicate } from "effect"
import type { InvalidRequest } from "../../../contract/JobError.ts"
import { strictTranslation, translationHeader } from "../../../contract/ChatHeaders.ts"
import * as ExactJson from "../../../bounds/ExactJson.ts"
import { spellingsOf } from "../../../contract/http/FieldSpelling.ts"
import { standardBase64 } from "../../json/StandardBase64.ts"
import { reader, turnFor } from "../../call/RequestBody.ts"
import type { Call } from "../../call/Protocol.ts"
import * as Json from "../../json/Json.ts"
import {
  type ContentPart,
  type Conversation,
  isMedia,
  type SettingNames,
  type Turn,
  withResultsNext
} from "./Conversation.ts"
import type { ClientDialect } from "./Dialect.ts"
import { Losses } from "./Losses.ts"

export interface ClientRequest<Request> {
  readonly request: Request
  readonly conversations: ReadonlyArray<Conversation>
  /** The consumer of the conversations adds to it. */
  readonly losses: Losses
}

/** For the losses of a call's request. `tolerance` applies unless the client requests strict translation. */
export const lossesOf = (
  { headers }: Pick<Call, "headers">,
  settings: SettingNames,
  tolerance: "ordinary" | "lenient"
): Losses => new Losses(headers?.[translationHeader] === strictTranslation ? "strict" : tolerance, settings)

/** The members of requests whose content is the client's, with ids and other numbers that no schema bounds. */
const exactMembers: ExactJson.ExactMembers = new Map([
  // the arguments and results of calls: messages, Gemini
  ...["input", "args", "response"].map((name) => [name, "written"] as const),
  ...[
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "schema",
    "json_schema",
    "responseSchema",
    "responseJsonSchema"
  ]
    .flatMap(spellingsOf).map((name) => [name, "value"] as const)
])

const parse = (text: string): unknown => {
  const json = Json.parseExact(text)
  return ExactJson.mayHoldExact(text) ? ExactJson.settle(json, exactMembers) : json
}

/** A seed that JavaScript's numbers cannot hold, with all its digits. */
export const exactSeed = ({ body }: Pick<Call, "body">, path = ""): ExactJson.ExactNumber | undefined => {
  const seed = path.split(".").reduce<unknown>((value, name) => {
    const fields = Json.fields(value)
    return spellingsOf(name).map((spelling) => fields[spelling]).find(Predicate.isNotNullish)
  }, Json.parseExact(Json.decodeText(body)))
  return ExactJson.isExact(seed) ? seed : undefined
}

const withExactSeed = (
  conversation: Conversation,
  call: Pick<Call, "body">,
  { seed: path }: SettingNames
): Conversation => {
  const { seed } = conversation
  const isExact = typeof seed !== "number" || Number.isSafeInteger(seed)
  return isExact ? conversation : { ...conversation, seed: exactSeed(call, path) ?? seed }
}

/** The conversations of a request, with the results of calls right after them, and their texts and files in the usual form. */
export const conversationsOf = <Request>(
  { toConversation }: Pick<ClientDialect<Request>, "toConversation">,
  request: Request,
  losses: Losses
): ReadonlyArray<Conversation> =>
  [toConversation(request, losses)].flat().map((conversation) => ({
    ...conversation,
    turns: withResultsNext(conversation.turns).map((turn) => turnWellFormed(turn, losses))
  }))

/** `tolerance` applies unless the client requests strict translation. */
export const decoder = <Request>(
  dialect: Pick<ClientDialect<Request>, "request" | "settings" | "fates" | "toConversation">,
  tolerance: "ordinary" | "lenient"
): (call: Pick<Call, "body" | "headers">) => Effect.Effect<ClientRequest<Request>, InvalidRequest> => {
  const read = reader(dialect.request, parse)
  return (call) =>
    Effect.flatMap(read(call), ({ json, request }) => {
      const losses = lossesOf(call, dialect.settings, tolerance)
      const turn = turnFor(call)
      return turn.pipe(
        Effect.andThen(Effect.sync(() => losses.recordUnmapped(json, dialect.fates))),
        Effect.andThen(turn),
        Effect.map(() => {
          const conversations = conversationsOf(dialect, request, losses).map((conversation) =>
            withExactSeed(conversation, call, dialect.settings)
          )
          for (const conversation of conversations) recordUnused(conversation, losses)
          return { request, conversations, losses }
        })
      )
    })
}

/** Half of a surrogate pair, which cutting a text leaves, makes JSON that providers reject. */
const wellFormed = (text: string, path: string | undefined, losses: Losses): string => {
  if (text.isWellFormed()) return text
  losses.warn(path ?? "", "had half a character, which was replaced")
  return text.toWellFormed()
}

const partWellFormed = (part: ContentPart, losses: Losses): ContentPart => {
  if (part.type === "text" || part.type === "reasoning") {
    return { ...part, text: wellFormed(part.text, part.path, losses) }
  }
  const { media } = part
  return isMedia(part) && media.type === "base64"
    ? { ...part, media: { ...media, data: standardBase64(media.data) } }
    : part
}

const turnWellFormed = (turn: Turn, losses: Losses): Turn => ({
  ...turn,
  content: turn.content.map((part) => partWellFormed(part, losses)),
  toolCalls: turn.toolCalls.map((call) => ({ ...call, arguments: wellFormed(call.arguments, call.path, losses) }))
})

/** Records what means nothing in any dialect: calls and reasoning outside the assistant's turns, and choices among no tools. */
const recordUnused = ({ parallelToolCalls, toolChoice, tools, turns }: Conversation, losses: Losses): void => {
  for (const { content, path = "", role, toolCalls } of turns) {
    if (role !== "assistant" && toolCalls.length > 0) {
      losses.warn(path, "has tool calls, which only the assistant makes")
    }
    for (const part of content) {
      if (part.type !== "reasoning") continue
      if (role !== "assistant") losses.warn(part.path ?? path, "is reasoning, which only the assistant has")
      else if (part.text === "" && part.signature === undefined) {
        losses.warn(part.path ?? path, "is reasoning without a text")
      }
    }
  }
  if (tools.length > 0) return
  if (toolChoice.type === "required" || toolChoice.type === "tool") losses.warnOf("toolChoice", noTools)
  if (parallelToolCalls === false) losses.warnOf("parallelToolCalls", noTools)
}

const noTools = "has no effect without tools"
