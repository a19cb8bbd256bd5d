/** Plans what each choice says, and says it: as deltas of one word or mark, within stop sequences and token limits. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { Conversation } from "../../shared/provider/chat/Conversation.ts"
import type { FinishReason, ModelEvent } from "../../shared/provider/chat/ModelEvent.ts"
import type { Tokenizer } from "../../shared/provider/local/Tokens.ts"
import { choose } from "./Extract.ts"
import { Facts } from "./Facts.ts"
import type { Substance } from "./JsonAnswer.ts"
import { jsonValue } from "./JsonAnswer.ts"
import type { Material } from "./Material.ts"
import { readMaterial } from "./Material.ts"
import { clip, splitSentences } from "./Sentences.ts"
import { differing, textAnswer } from "./TextAnswer.ts"
import type { PlannedCall } from "./ToolUse.ts"
import { planCalls } from "./ToolUse.ts"

export type Answer =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "calls"; readonly calls: ReadonlyArray<PlannedCall & { readonly id: string }> }

/** One event, and the tokens that it has cost. */
export interface Step {
  readonly event: ModelEvent
  readonly tokens: number
}

/** One answer for each choice. `words` sets the length of text answers. */
export const planAnswers = Effect.fnUntraced(function*(conversation: Conversation, words: number | undefined) {
  const { choices, format, seed } = conversation
  const material = yield* readMaterial(conversation)
  // Neighbouring seeds begin with different wordings.
  const first = Math.abs(Math.trunc(seed ?? 0)) % 1_000
  const calls = yield* planCalls(conversation, material, first)
  if (calls.length > 0) {
    const depth = conversation.turns.length
    return Array.from({ length: choices }, (_, choice): Answer => ({
      type: "calls",
      calls: calls.map((call, i) => ({ ...call, id: callId([depth, choice, i, call.name, call.arguments]) }))
    }))
  }
  const write = (variant: number): Effect.Effect<string> => {
    switch (format.type) {
      case "text":
        return Effect.sync(() => textAnswer(material, variant, words))
      case "json":
        return writeJson(schemaOfRequest(material.question), material, variant)
      case "jsonSchema":
        return writeJson(format.schema, material, variant)
    }
  }
  const variants = Array.from({ length: choices }, (_, choice) => first + choice)
  // Many choices or long answers take their time: others have their turn in between.
  const texts = yield* Effect.forEach(variants, (variant) => Effect.andThen(Effect.yieldNow, write(variant)))
  return (format.type === "text" ? differing(texts) : texts).map((text): Answer => ({ type: "text", text }))
})

const writeJson = (schema: unknown, material: Material, variant: number): Effect.Effect<string> =>
  Effect.map(jsonValue(schema, substanceOf(material, variant)), (value) => JSON.stringify(value))

const callId = (parts: ReadonlyArray<string | number>): string =>
  `call_${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24)}`

const substanceOf = (material: Material, variant: number): Substance => {
  const prose = textAnswer(material, variant, undefined)
  const passages = choose(material.ranking, 20, 0).map(({ text }) => text)
  const results = material.results.map(({ text }) => text.replaceAll("; ", "\n"))
  return {
    facts: new Facts([...results, clip(passages.join(" "), 4_000), material.said].join("\n").trim()),
    prose,
    sentences: passages.length > 0 ? passages.slice(0, 3) : splitSentences(prose),
    sparing: false,
    variant
  }
}

const keysPhrase = /\b(?:keys?|fields?|properties|attributes)\b(?:\s+(?:named|called|of))?\s*:?\s*([^.!?:;\n]{1,200})/iu
const numeric = /(?:^|_)(?:age|year|count|number|total|price|amount|quantity|score|population)$/iu

/** An object with the keys that the request lists, as in “JSON with the keys name and age”; else with an answer. */
const schemaOfRequest = (question: string): unknown => {
  const listed = keysPhrase.exec(question)?.[1]?.split(/\s*,\s*(?:and\s+)?|\s+and\s+/u) ?? []
  const keys = listed.map((key) => key.trim().replace(/^["'`]|["'`]$/gu, ""))
  const end = keys.findIndex((key) => !/^\p{L}[\p{L}\p{N}_]{0,40}$/u.test(key))
  const names = end === -1 ? keys : keys.slice(0, end)
  const properties = names.length === 0 ? ["answer"] : names
  return {
    type: "object",
    properties: Object.fromEntries(properties.map((key) => [key, { type: numeric.test(key) ? "number" : "string" }])),
    required: properties
  }
}

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
