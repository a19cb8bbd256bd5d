/** Counts all tokens of a text-only request or answer as text tokens, if the provider does not report them by kind. */
import type { Usage } from "../../../contract/Usage.ts"
import { type Conversation, isMedia } from "./Conversation.ts"

export const isText = (conversations: ReadonlyArray<Conversation>): boolean =>
  conversations.every(({ turns }) => turns.every(({ content }) => !content.some(isMedia)))

/** The usage with the tokens of text, where they follow from what request and answer hold. */
export const complete = (usage: Usage, isTextRequest: boolean, isTextAnswer: boolean): Usage => {
  const { inputAudioTokens, inputImageTokens, inputTextTokens, inputTokens } = usage
  const { outputAudioTokens, outputImageTokens, outputTextTokens, outputTokens, reasoningTokens = 0 } = usage
  const isInput = isTextRequest && !inputTextTokens && !inputAudioTokens && !inputImageTokens
  const isOutput = isTextAnswer && !outputTextTokens && !outputAudioTokens && !outputImageTokens
  return {
    ...usage,
    ...(isInput ? { inputTextTokens: inputTokens } : {}),
    ...(isOutput ? { outputTextTokens: Math.max(0, outputTokens - reasoningTokens) } : {})
  }
}
