/**
 * Estimates the tokens of a conversation with OpenAI's current tokenizer, for providers that do not count them. For models of other
 * families the count differs by up to a third: agents need one that is about right, and otherwise send paid requests to find it.
 */
import { Effect } from "effect"
import { maxFileTokens } from "../../../contract/TokenEstimate.ts"
import { loadTokenizer } from "../../../text/Tokens.ts"
import { bytesPerToken } from "../../call/EstimatedUsage.ts"
import { type Conversation, isMedia, type MediaPart } from "../conversation/Conversation.ts"
import type { Signature } from "../conversation/Signature.ts"
import type { Counter } from "./Counts.ts"

/** The tokens that chat templates add to each turn, and at the end. */
const turnTokens = 4

/** The tokens of a large picture, as most models count it. */
const pictureTokens = 1_600

/** Without the text of a document. */
const mediaTokens = ({ media, type }: MediaPart): number => {
  if (media.type === "text") return 0
  return type === "image" || media.type !== "base64"
    ? pictureTokens
    : Math.min(maxFileTokens, Math.ceil(media.data.length / bytesPerToken))
}

/** The texts of a conversation, its calls of tools, and their definitions and schemas; without reasoning and documents. */
export const textsOf = ({ format, tools, turns }: Conversation): ReadonlyArray<string> => [
  ...turns.flatMap(({ content, toolCalls }) => [
    content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n").toWellFormed(),
    ...toolCalls.flatMap((call) => [call.name, call.arguments])
  ]),
  ...tools.map((tool) => JSON.stringify(tool)),
  ...format.type === "jsonSchema" ? [JSON.stringify(format.schema)] : []
]

/** Whether reasoning is from a model of such a provider, which gets no reasoning of others. */
const isOwn = (signature: Signature | undefined): boolean =>
  signature === undefined || signature.origin === "openai" || signature.origin === "responses"

/** The texts of reasoning, and of documents that are text. */
const otherTexts = ({ turns }: Conversation): ReadonlyArray<string> =>
  turns.flatMap(({ content }) =>
    content.flatMap((part) => {
      if (part.type === "reasoning") return isOwn(part.signature) ? [part.text.toWellFormed()] : []
      return isMedia(part) && part.media.type === "text" ? [part.media.text.toWellFormed()] : []
    })
  )

/** Rounded up: every conversation has a few more tokens than its texts. */
export const count: Counter = Effect.fnUntraced(function*({ conversation }) {
  const tokenizer = yield* loadTokenizer
  const texts = yield* tokenizer.countAll([...textsOf(conversation), ...otherTexts(conversation)])
  const media = conversation.turns.flatMap(({ content }) => content.filter(isMedia).map(mediaTokens))
  const template = turnTokens * (conversation.turns.length + 1)
  return { tokens: media.reduce((sum, tokens) => sum + tokens, texts + template), isEstimate: true }
})
