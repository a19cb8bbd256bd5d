/** Plans what each choice says, and says it: as deltas of one word or mark, within stop sequences and token limits. */
import { Effect, Result } from "effect"
import { createHash } from "node:crypto"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Conversation } from "../../shared/provider/dialects/conversation/Conversation.ts"
import type { FinishReason, ModelEvent } from "../../shared/provider/dialects/conversation/ModelEvent.ts"
import type { Tokenizer } from "../../shared/text/Tokens.ts"
import { jsonValue } from "./JsonAnswer.ts"
import { clip, type Last, readLast } from "./Text.ts"
import { planCalls, type PlannedCall } from "./ToolUse.ts"

export type Answer =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "calls"; readonly calls: ReadonlyArray<PlannedCall & { readonly id: string }> }

/** One event, and the tokens that it has cost. */
export interface Step {
  readonly event: ModelEvent
  readonly tokens: number
}

/** Different ways to say what this is; the message follows. The seed selects the first one. */
const leads = [
  "This is the gateway's built-in echo, not a model. You wrote: ",
  "The gateway's built-in echo, which is no model, has read: ",
  "No model answers here, only the gateway's built-in echo. Your message: ",
  "The built-in echo of the gateway, not a model, repeats: "
]

/** An order to say just this. */
const order = /^(?:please )?(?:say|repeat|echo|reply with(?: exactly| only| just)?):?\s+["“]?(.+?)["”]?$/isu

/** One answer for each choice. `words` sets the length of text answers. */
export const planAnswers = Effect.fnUntraced(function*(conversation: Conversation, words: number | undefined) {
  const { choices, format, seed } = conversation
  const last = readLast(conversation)
  const calls = yield* planCalls(conversation, last)
  if (calls.length > 0) {
    const depth = conversation.turns.length
    return Array.from({ length: choices }, (_, choice): Answer => ({
      type: "calls",
      calls: calls.map((call, i) => ({ ...call, id: callId([depth, choice, i, call.name, call.arguments]) }))
    }))
  }
  const first = Math.abs(Math.trunc(seed ?? 0)) % 1_000
  const texts = format.type === "text"
    ? differing(Array.from({ length: choices }, (_, choice) => ofLength(echo(last, first + choice), words)))
    : Array<string>(choices).fill(yield* json(format.type === "json" ? undefined : format.schema, last))
  return texts.map((text): Answer => ({ type: "text", text }))
})

const echo = ({ results, said, unread }: Last, variant: number): string => {
  if (results.length > 0) {
    return results.map(({ text, tool }) => text === "" ? `${tool} returned nothing` : `${tool} returned: ${text}`)
      .join("\n")
  }
  return (order.exec(said)?.[1] ?? `${leads[variant % leads.length]}${said === "" ? "nothing." : said}`) + unread
}

/** Numbers texts that are alike. */
const differing = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.map((text, i) => texts.indexOf(text) < i ? `${text} (${i + 1})` : text)

/** Repeats or cuts a text to so many words. */
const ofLength = (text: string, words: number | undefined): string => {
  if (words === undefined) return text
  const round = text.split(" ")
  const all = [...round]
  while (all.length < words) all.push(...round)
  return all.slice(0, words).join(" ")
}

/** Without a schema an object with the message. */
const json = (schema: unknown, { results, said }: Last): Effect.Effect<string, InvalidRequest> => {
  const text = [...results.map(({ text }) => text), said].join("\n")
  return schema === undefined
    ? Effect.succeed(JSON.stringify({ echo: clip(text, 2_000) }))
    : Result.match(jsonValue(schema, text), {
      onFailure: (reason) => Effect.fail(InvalidRequest.at("response_format", `has a schema that ${reason}`)),
      onSuccess: (value) => Effect.succeed(JSON.stringify(value))
    })
}

const callId = (parts: ReadonlyArray<string | number>): string =>
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
  if (answer.type === "text") {
    const end = firstStop(answer.text, stop)
    const text = end === undefined ? answer.text : answer.text.slice(0, end.at)
    const left = yield* speakPieces(tokenizer, text, maxTokens, (delta) => ({ type: "text", choice, delta }))
    yield left === undefined ? finish("length") : finish("stop", end?.sequence)
    return
  }
  let left: number | undefined = maxTokens
  for (const [call, { arguments: json, id, name }] of answer.calls.entries()) {
    const tokens = tokenizer.count(name)
    if (left === undefined || tokens > left) {
      left = undefined
      break
    }
    yield { event: { type: "toolCall", choice, call, id, name }, tokens }
    left = yield* speakPieces(
      tokenizer,
      json,
      left - tokens,
      (delta) => ({ type: "toolArguments", choice, call, delta })
    )
  }
  yield finish(left === undefined ? "length" : "tool_calls")
}

/** Returns how many tokens are left, or `undefined` where the text had to be cut. */
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

/** Where the earliest stop sequence begins; of several at one place the shortest counts, which is complete first. */
const firstStop = (
  text: string,
  stop: ReadonlyArray<string>
): { readonly at: number; readonly sequence: string } | undefined =>
  stop.filter((sequence) => sequence !== "")
    .map((sequence) => ({ at: text.indexOf(sequence), sequence }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => a.at - b.at || a.sequence.length - b.sequence.length)[0]
