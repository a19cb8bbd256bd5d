/** Reads out of a conversation what is asked, and what there is to answer it with. */
import { Effect, Option, Schema } from "effect"
import type { ContentPart, Conversation, Turn } from "../../shared/provider/chat/Conversation.ts"
import type { Origin, Passage, Ranking, Source } from "./Extract.ts"
import { choose, ends, rankByCentrality, rankByQuestion, readPassages } from "./Extract.ts"
import { clip, splitSentences, topicWords } from "./Sentences.ts"

export interface ToolResult {
  readonly tool: string
  readonly text: string
}

export interface Material {
  /** What the user said last, at most 4,000 characters of it: its head and its tail. */
  readonly said: string
  /** The part of it that asks something. Empty where a text was given and nothing asked. */
  readonly question: string
  /** What to answer with, best first. */
  readonly ranking: Ranking
  /** How the ranking came about: by the question, as a summary, or as a summary because nothing fits the question. */
  readonly basis: "question" | "summary" | "nothing fits"
  /** What the tools gave since the user spoke. */
  readonly results: ReadonlyArray<ToolResult>
  /** Says which images and files cannot be read. Empty where there are none. */
  readonly unread: string
}

const questionMark = /[?？]["”»)]*$/u
const request =
  /^(?:(?:please|now|then|can you|could you|would you)[,\s]+)*(?:summari[sz]e|tl;?dr|list|explain|describe|tell|give|show|find|extract|answer|write|name|translate|compare|identify|say|repeat|reply|respond|return|call|use|(?:what|who|whom|whose|when|where|why|how|which)(?:'s|\s+(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|many|much)))\b/iu
const summary = /\b(?:summar\w*|tl;?dr|main points?|key points?|gist|overview|recap|outline)\b/iu

export const readMaterial = Effect.fnUntraced(function*(conversation: Conversation) {
  const { turns } = conversation
  const last = lastTurn(turns)
  const text = last === -1 ? "" : textOf(turns[last] as Turn)
  const { asked, question } = readQuestion(text)

  const sources: Array<Source> = []
  for (const turn of turns.slice(0, last + 1)) {
    const text = turn.role === "tool" ? readable(textOf(turn)) : textOf(turn)
    sources.push({ text, origin: origins[turn.role] })
  }
  const passages = (yield* readPassages(sources)).filter(({ source, text }) =>
    source === last ? !asked.has(text) && !asked.has(wholeTurn) : !isOwnReply(text)
  )

  const material: Material = {
    said: ends(text.trim(), 4_000),
    question,
    ...rank(question, passages, passages.filter(({ source }) => source === last)),
    results: yield* readResults(turns, last, question),
    unread: last === -1 ? "" : describeUnread((turns[last] as Turn).content)
  }
  return material
})

const origins: { readonly [R in Turn["role"]]: Origin } = {
  system: "instructions",
  user: "user",
  assistant: "assistant",
  tool: "tool"
}

const lastTurn = (turns: ReadonlyArray<Turn>): number => {
  const user = turns.findLastIndex((turn) => turn.role === "user")
  return user === -1 ? turns.length - 1 : user
}

export const textOf = (turn: Turn): string =>
  turn.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n").toWellFormed()

/** This engine's own words about itself are nothing to quote. */
const isOwnReply = (text: string): boolean => text.includes("built-in extractive engine")

/** A short turn in which nothing is asked is itself what is said, and no text to quote from. */
const wholeTurn = Symbol("wholeTurn")

const readQuestion = (text: string): { readonly question: string; readonly asked: ReadonlySet<string | symbol> } => {
  const sentences = splitSentences(ends(text, 8_000))
  // Of a long text only what stands at its edges is meant for the engine.
  const asked = sentences.filter((sentence, i) =>
    (i < 2 || i >= sentences.length - 3) && (questionMark.test(sentence) || request.test(sentence))
  )
  return asked.length === 0 && sentences.length <= 3 && text.length <= 400
    ? { question: text.trim(), asked: new Set([wholeTurn]) }
    : { question: clip(asked.join(" "), 1_000), asked: new Set(asked) }
}

const rank = (
  question: string,
  passages: ReadonlyArray<Passage>,
  given: ReadonlyArray<Passage>
): Pick<Material, "ranking" | "basis"> => {
  const topic = topicWords(question)
  if (summary.test(question) || (topic.length === 0 && given.length > 0)) {
    return { ranking: rankByCentrality(given.length > 0 ? given : passages), basis: "summary" }
  }
  const ranking = rankByQuestion(passages, topic)
  return ranking.length > 0 || given.length === 0
    ? { ranking, basis: "question" }
    : { ranking: rankByCentrality(given), basis: "nothing fits" }
}

/** The latest results that are read, and the characters of each that are told without choosing among its sentences. */
const maxResults = 20
const shortResult = 600

const readResults = Effect.fnUntraced(function*(turns: ReadonlyArray<Turn>, last: number, question: string) {
  const names = new Map(turns.flatMap((turn) => turn.toolCalls.map((call) => [call.id, call.name] as const)))
  const results: Array<ToolResult> = []
  for (const turn of turns.slice(last + 1).filter(({ role }) => role === "tool").slice(-maxResults)) {
    const text = yield* gist(readable(textOf(turn)).trim(), question)
    results.push({ tool: names.get(turn.toolCallId ?? "") ?? "The tool", text })
  }
  return results as ReadonlyArray<ToolResult>
})

const gist = Effect.fnUntraced(function*(text: string, question: string) {
  if (text.length <= shortResult) return text
  const passages = yield* readPassages([{ text, origin: "tool" }])
  const fitting = rankByQuestion(passages, topicWords(question))
  const chosen = choose(fitting.length > 0 ? fitting : rankByCentrality(passages), 3, 0.5)
  return chosen.length === 0 ? clip(text, shortResult) : chosen.map((passage) => passage.text).join(" ")
})

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** The longest text that is tried as JSON, in characters. */
const jsonCharacters = 100_000
const jsonLeaves = 60

/** Deeper than this, nothing is told. */
const jsonDepth = 32

/** A JSON text as a list of its names and values; any other text as it is. */
export const readable = (text: string): string => {
  if (text.length > jsonCharacters || !/^\s*[[{]/u.test(text)) return text
  const json = decodeJson(text)
  return Option.isSome(json) ? leaves(json.value, "", 0).slice(0, jsonLeaves).join("; ") : text
}

const leaves = (json: unknown, path: string, depth: number): ReadonlyArray<string> => {
  if (depth > jsonDepth) return []
  if (typeof json !== "object" || json === null) return [path === "" ? String(json) : `${path}: ${String(json)}`]
  if (Array.isArray(json)) {
    return json.every((item) => typeof item !== "object" || item === null)
      ? [path === "" ? json.join(", ") : `${path}: ${json.join(", ")}`]
      : json.slice(0, jsonLeaves).flatMap((item, i) => leaves(item, `${path} ${i + 1}`.trim(), depth + 1))
  }
  return Object.entries(json).slice(0, jsonLeaves).flatMap(([name, value]) =>
    leaves(value, `${path} ${name}`.trim(), depth + 1)
  )
}

const numerals = ["No", "One", "Two", "Three", "Four", "Five"]

const describeUnread = (content: ReadonlyArray<ContentPart>): string => {
  const images = content.filter((part) => part.type === "image").length
  const files = content.flatMap((part) => part.type === "file" ? [part] : [])
  const given = (count: number, noun: string): string =>
    count === 1 ? `One ${noun} was given` : `${numerals[count] ?? count} ${noun}s were given`
  const notes: Array<string> = []
  if (images > 0) notes.push(`${given(images, "image")}, which this engine cannot see.`)
  if (files.length > 0) {
    const names = files.flatMap(({ mediaType, name }) => name ?? (mediaType === "" ? [] : [mediaType]))
    const which = names.length === 0 ? "" : ` (${clip(names.slice(0, 5).join(", "), 200)})`
    notes.push(`${given(files.length, "file")}${which}, which this engine cannot read.`)
  }
  return notes.join(" ")
}
