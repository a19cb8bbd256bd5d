/** Counts all tokens of a request or an answer that is only text as text, if the provider does not say so. */
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
