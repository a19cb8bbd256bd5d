/** Plans the answer of each choice and emits it word by word, within stop sequences and token limits. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Conversation } from "../../shared/provider/dialects/conversation/Conversation.ts"
import type { FinishReason, ModelEvent } from "../../shared/provider/dialects/conversation/ModelEvent.ts"
import type { Tokenizer } from "../../shared/text/Tokens.ts"
import { jsonValue } from "./JsonAnswer.ts"
import { clip, type Last, readLast } from "./Text.ts"
import { planCall, type PlannedCall } from "./ToolUse.ts"

/** A text, or a call. */
export type Answer = string | PlannedCall & { readonly id: string }

/** One event and its cost in tokens. */
export interface Step {
  readonly event: ModelEvent
  readonly tokens: number
}

/** Matches an instruction to repeat a text, such as `say hello`. */
const order = /^(?:please )?(?:say|repeat|echo|reply with(?: exactly| only| just)?):?\s+["“]?(.+?)["”]?$/isu

/** Continues any text that the client asks to continue. */
const continuation =
  "so it goes on, says the gateway's built-in echo, which is not a model and cannot know what comes next."

/** One answer for each choice. `words` sets the length of text answers. */
export const planAnswers = Effect.fnUntraced(function*(conversation: Conversation, words: number | undefined) {
  const { choices, continues, format, turns } = conversation
  const last = readLast(conversation)
  const call = yield* planCall(conversation, last)
  const text = call !== undefined ? "" : format.type === "text" ? echo(last, continues) : yield* json(format, last)
  return Array.from({ length: choices }, (_, choice): Answer => {
    if (call !== undefined) return { ...call, id: callId([turns.length, choice, call]) }
    return format.type === "text" ? toLength(choice === 0 ? text : `${text} (${choice + 1})`, words) : text
  })
})

const echo = ({ results, said, unread }: Last, continues: boolean | undefined): string => {
  if (results.length > 0) {
    return results.map(({ text, tool }) => text === "" ? `${tool} returned nothing` : `${tool} returned: ${text}`)
      .join("\n")
  }
  const ordered = order.exec(said)?.[1]
  if (continues === true && ordered === undefined) {
    return `${/[.!?]["”']?$/u.test(said) ? " And" : " and"} ${continuation}`
  }
  const answer = ordered ??
    `This is the gateway's built-in echo, not a model. You wrote: ${said === "" ? "nothing." : said}`
  return unread === 0 ? answer : `${answer} This engine cannot read the ${unread} images or files of the message.`
}

/** Repeats or cuts a text to this many words. */
const toLength = (text: string, words: number | undefined): string => {
  if (words === undefined) return text
  const round = text.split(" ")
  return Array.from({ length: words }, (_, at) => round[at % round.length]).join(" ")
}

/** A value that fits the schema, or an object with the message if there is no schema. */
const json = (
  format: Exclude<Conversation["format"], { readonly type: "text" }>,
  { results, said }: Last
): Effect.Effect<string, InvalidRequest> => {
  const text = [...results.map(({ text }) => text), said].join("\n")
  if (format.type === "json") return Effect.succeed(JSON.stringify({ echo: clip(text, 2_000) }))
  return Effect.mapBoth(Effect.fromResult(jsonValue(format.schema, text)), {
    onFailure: (reason) => InvalidRequest.at(format.path ?? "response_format", `has a schema that ${reason}`),
    onSuccess: (value) => JSON.stringify(value)
  })
}

const callId = (parts: ReadonlyArray<unknown>): string =>
  `call_${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24)}`

/** The events of one choice; the last one is its finish. `maxTokens` may be infinite. */
export function* speak(
  tokenizer: Tokenizer,
  answer: Answer,
  choice: number,
  stop: ReadonlyArray<string>,
  maxTokens: number
): Generator<Step, void> {
  const finish = (reason: FinishReason, stopSequence?: string): Step => ({
    event: { type: "finish", choice, reason, ...stopSequence === undefined ? {} : { stopSequence } },
    tokens: 0
  })
  if (typeof answer === "string") {
    const end = firstStop(answer, stop)
    const text = answer.slice(0, end?.at)
    const left = yield* speakPieces(tokenizer, text, maxTokens, (delta) => ({ type: "text", choice, delta }))
    yield left === undefined ? finish("length") : finish("stop", end?.sequence)
    return
  }
  const { arguments: json, id, name } = answer
  const tokens = tokenizer.count(name)
  if (tokens > maxTokens) return yield finish("length")
  yield { event: { type: "toolCall", choice, call: 0, id, name }, tokens }
  const toEvent = (delta: string): ModelEvent => ({ type: "toolArguments", choice, call: 0, delta })
  const left = yield* speakPieces(tokenizer, json, maxTokens - tokens, toEvent)
  yield finish(left === undefined ? "length" : "tool_calls")
}

/** Returns the number of tokens left, or `undefined` if the text was cut. */
function* speakPieces(
  tokenizer: Tokenizer,
  text: string,
  maxTokens: number,
  event: (delta: string) => ModelEvent
): Generator<Step, number | undefined> {
  let left = maxTokens
  for (const piece of tokenizer.pieces(text)) {
    if (piece.tokens > left) {
      const head = tokenizer.head(piece.text, left)
      if (head !== "") yield { event: event(head), tokens: tokenizer.count(head) }
      return undefined
    }
    left -= piece.tokens
    yield { event: event(piece.text), tokens: piece.tokens }
  }
  return left
}

/** The earliest stop sequence. Of several that start at the same place, the shortest, because it is complete first. */
const firstStop = (text: string, stop: ReadonlyArray<string>) =>
  stop.filter((sequence) => sequence !== "")
    .map((sequence) => ({ at: text.indexOf(sequence), sequence }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => a.at - b.at || a.sequence.length - b.sequence.length)[0]
