/**
 * Fits the names of tools to what a provider accepts, and restores the client's names in the answer. The same name always becomes the same
 * one, so that prompts stay cacheable.
 */
import { hash } from "node:crypto"
import type { Conversation } from "../conversation/Conversation.ts"
import type { AnswerDecoder, NameRule } from "../conversation/Dialect.ts"
import type { ModelEvent } from "../conversation/ModelEvent.ts"

/** https://platform.openai.com/docs/api-reference/chat/create: `a-z, A-Z, 0-9, or contain underscores and dashes`, 64 characters; so Bedrock. */
export const openAiNames: NameRule = { rejected: /[^\w-]/g, most: 64 }
/** https://docs.claude.com/en/api/messages: `^[a-zA-Z0-9_-]{1,128}$`. */
export const anthropicNames: NameRule = { rejected: /[^\w-]/g, most: 128 }
/** https://ai.google.dev/api/caching#FunctionDeclaration: also colons and dots; the first is a letter or an underscore. */
export const geminiNames: NameRule = { rejected: /[^\w:.-]/g, start: /^[A-Za-z_]/, most: 64 }
/** Cohere's models see tools as functions of Python. */
export const cohereNames: NameRule = { rejected: /\W/g, start: /^[A-Za-z_]/, most: 64 }

/** A hash of 8 digits keeps names apart that differ only in rejected characters or after the longest beginning. */
const fitted = (name: string, { most, rejected, start }: NameRule): string => {
  const allowed = name.replaceAll(rejected, "_")
  const begun = start === undefined || start.test(allowed) ? allowed : `_${allowed}`
  return begun === name && name.length <= most
    ? name
    : `${begun.slice(0, most - 9)}_${hash("sha256", name, "hex").slice(0, 8)}`
}

export interface Fitted {
  readonly conversation: Conversation
  /** The client's names by those that the provider knows, where they differ. */
  readonly originals: ReadonlyMap<string, string>
}

/** The conversation with names that the provider accepts: of its tools, of earlier calls and of the choice. */
export const fit = (conversation: Conversation, rule: NameRule): Fitted => {
  const { toolChoice, tools, turns } = conversation
  const originals = new Map<string, string>()
  const names = [...tools, ...turns.flatMap(({ toolCalls }) => toolCalls)].map(({ name }) => name)
  for (const name of names) {
    const other = fitted(name, rule)
    if (other !== name) originals.set(other, name)
  }
  if (originals.size === 0) return { conversation, originals }
  const renamed = <Named extends { readonly name: string }>(each: Named): Named => ({
    ...each,
    name: fitted(each.name, rule)
  })
  return {
    originals,
    conversation: {
      ...conversation,
      tools: tools.map(renamed),
      turns: turns.map((turn) =>
        turn.toolCalls.length === 0 ? turn : { ...turn, toolCalls: turn.toolCalls.map(renamed) }
      ),
      toolChoice: toolChoice.type === "tool" ? renamed(toolChoice) : toolChoice
    }
  }
}

/** The event with the client's name of the tool. */
export const restored = (event: ModelEvent, originals: Fitted["originals"]): ModelEvent =>
  event.type === "toolCall" ? { ...event, name: originals.get(event.name) ?? event.name } : event

/** Decodes an answer with the client's names. */
export const restoring = (decoder: AnswerDecoder, originals: Fitted["originals"]): AnswerDecoder => {
  if (originals.size === 0) return decoder
  const all = (events: ReadonlyArray<ModelEvent> | undefined) => events?.map((event) => restored(event, originals))
  return {
    frame: (data) => all(decoder.frame(data)),
    whole: (answer) => all(decoder.whole(answer)),
    last: () => all(decoder.last()) ?? [],
    get isComplete() {
      return decoder.isComplete
    },
    get mayEnd() {
      return decoder.mayEnd ?? false
    },
    get usage() {
      return decoder.usage
    }
  }
}
