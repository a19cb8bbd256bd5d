/** Asks for JSON in words: in their JSON mode, some providers want to read of it in the conversation. */
import { type Conversation, textTurn, type Turn } from "../conversation/Conversation.ts"

export const inJson = "Answer with one JSON object and with nothing else."

/**
 * The turns, after an instruction if JSON is wanted and none mentions it. OpenAI: "'messages' must contain the word 'json' in some form, to use
 * 'response_format' of type 'json_object'". Cohere's models may never end without it.
 */
export const withJsonWord = ({ format, turns }: Pick<Conversation, "format" | "turns">): ReadonlyArray<Turn> =>
  format.type !== "json" || turns.some(mentions) ? turns : [textTurn("system", inJson), ...turns]

const mentions = ({ content }: Turn): boolean => content.some((part) => part.type === "text" && /json/i.test(part.text))
