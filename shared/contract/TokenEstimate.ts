/**
 * Estimates a request's tokens before a tokenizer or a provider counts them: the limits that the request states, times the number of
 * answers, plus an estimate of everything that it does not state.
 */
import { Predicate, String } from "effect"
import type { Operation } from "./Operation.ts"
import type { Usage } from "./Usage.ts"

type Field = (name: string) => unknown

/** The maximum number of tokens that a request allows its answers. */
export interface TokenStatement {
  readonly tokens: number
  /** The fields that state this number; the limit of one answer comes first. */
  readonly fields: readonly [string, ...Array<string>]
}

export interface TokenDemand {
  /** The tokens to reserve for the request, at least 1. */
  readonly tokens: number
  /** Absent if the request does not limit its answers. */
  readonly stated: TokenStatement | undefined
}

/** For English text and JSON in UTF-8. Other scripts have fewer bytes per token, pictures many more. */
const bytesPerToken = 4
/** Maximum to reserve for pictures and other files in a request, because their size says nothing about their tokens. */
export const maxFileTokens = 50_000
/** The tokens to reserve for an answer that the request does not limit. */
const defaultAnswerTokens = 500
/** The tokens to reserve for a generated picture, for models that count pictures in tokens. */
const pictureTokens = 1_000
/** The maximum that one answer is expected to use, whatever its limit. */
const maxLikelyAnswerTokens = 4_000

interface Stated {
  readonly name: string
  readonly value: number
}

/** The spellings of one name. */
type Spellings = ReadonlyArray<string>

/** The place of a field: its path from the request's own field inwards. */
interface Place {
  readonly name: string
  readonly outer: Spellings
  readonly inner: ReadonlyArray<Spellings>
}

/** Google's fields may also be in snake_case. */
const spellingsOf = (name: string): Spellings => [...new Set([name, String.camelToSnake(name)])]

const places = (...names: ReadonlyArray<string>): ReadonlyArray<Place> =>
  names.map((name) => {
    const [outer = "", ...inner] = name.split(".")
    return { name, outer: spellingsOf(outer), inner: inner.map(spellingsOf) }
  })

const propertyOf = (value: unknown, spellings: Spellings): unknown => {
  for (const name of spellings) {
    if (Predicate.hasProperty(value, name) && value[name] !== undefined) return value[name]
  }
  return undefined
}

const fieldOf = (field: Field, spellings: Spellings): unknown => {
  for (const name of spellings) {
    const value = field(name)
    if (value !== undefined) return value
  }
  return undefined
}

/** Loops instead of callbacks: every request with limits looks at all places, and has few of them. */
const valueAt = (field: Field, { inner, outer }: Place): unknown => {
  let value = fieldOf(field, outer)
  for (const spellings of inner) {
    if (value === undefined) return undefined
    value = propertyOf(value, spellings)
  }
  return value
}

/** The largest number in these fields, capped so that products stay finite. The first if several are equal. */
const largest = (field: Field, all: ReadonlyArray<Place>): Stated | undefined => {
  let most: Stated | undefined
  for (const place of all) {
    const found = valueAt(field, place)
    if (typeof found !== "number" || !(found >= 0)) continue
    const value = Math.min(found, Number.MAX_SAFE_INTEGER)
    if (most === undefined || value > most.value) most = { name: place.name, value }
  }
  return most
}

const lengths = places("max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens")
const thoughts = places("thinking.budget_tokens", "generationConfig.thinkingConfig.thinkingBudget")
const choiceCounts = places("n", "generationConfig.candidateCount")
/** The provider makes `best_of` answers and returns `n` of them. */
const counts = [...choiceCounts, ...places("best_of")]
const pictureCounts = places("n", "parameters.n")

interface Answers {
  /** The limit of one answer; `undefined` if not stated. */
  readonly length: Stated | undefined
  /** The reasoning budget; `undefined` if not stated. */
  readonly thought: Stated | undefined
  /** Their product is the number of answers. */
  readonly factors: ReadonlyArray<Stated>
}

const promptsIn = (field: Field): number => {
  const prompt = field("prompt")
  // numbers are the tokens of one prompt
  return Array.isArray(prompt) && typeof prompt[0] !== "number" ? Math.max(1, prompt.length) : 1
}

/** What a request states about its answers. Of several fields for the same limit, the largest counts: the provider may use any. */
const answersOf = (field: Field): Answers => {
  const factors: Array<Stated> = []
  const choices = largest(field, counts)
  if (choices !== undefined && choices.value > 1) factors.push(choices)
  const prompts = promptsIn(field)
  if (prompts > 1) factors.push({ name: "prompt", value: prompts })
  return { length: largest(field, lengths), thought: largest(field, thoughts), factors }
}

/** The number of a chat request's prompts, and of the choices that it asks for per prompt. Each is at least 1. */
export const choicesOf = (field: Field): { readonly prompts: number; readonly choices: number } => ({
  prompts: promptsIn(field),
  choices: Math.max(1, largest(field, choiceCounts)?.value ?? 1)
})

/** Whether a chat request asks for several choices, for all prompts together. `field` reads a field. */
export const hasSeveralChoices = (field: Field): boolean => {
  const { choices, prompts } = choicesOf(field)
  return choices * prompts > 1
}

const countOf = ({ factors }: Answers): number => factors.reduce((product, { value }) => product * value, 1)

/** The stated maximum. Most providers count reasoning as part of the answer, so the larger of both limits is certainly allowed. */
const statementOf = (answers: Answers): TokenStatement | undefined => {
  const { factors, length, thought } = answers
  const most = length === undefined || (thought !== undefined && thought.value > length.value) ? thought : length
  return most === undefined ? undefined : {
    tokens: Math.ceil(most.value * countOf(answers)),
    fields: [most.name, ...factors.map(({ name }) => name)]
  }
}

/** Whether a text is a file: long, with only characters of base64 or of a data URL at its beginning, middle and end. */
const isFile = (text: string): boolean => {
  if (text.length < 4_096) return false
  const middle = text.length >> 1
  return [text.slice(0, 256), text.slice(middle, middle + 256), text.slice(-256)].every((part) =>
    /^[\w+/=:;,.-]*$/.test(part)
  )
}

/** The number of characters of all files in a value. */
const fileSize = (value: unknown): number => {
  if (typeof value === "string") return isFile(value) ? value.length : 0
  if (typeof value !== "object" || value === null) return 0
  let size = 0
  for (const each of Array.isArray(value) ? value : Object.values(value)) size += fileSize(each)
  return size
}

/** Fields of chat requests that hold texts and files. */
const contents = places("messages", "contents", "input", "prompt", "system", "systemInstruction", "tools")

const isText = ({ workloads }: Operation): boolean =>
  workloads.every((workload) => workload === "embeddings" || workload === "rerank")
const isChat = ({ workloads }: Operation): boolean => workloads.includes("chat")

/** The tokens of the request without its answers. */
const requestTokens = (operation: Operation, bytes: number, field: Field): number => {
  const all = Math.max(1, Math.ceil(bytes / bytesPerToken))
  if (all <= maxFileTokens || isText(operation)) return all
  if (!isChat(operation)) return maxFileTokens
  const files = contents.reduce((size, place) => size + fileSize(valueAt(field, place)), 0)
  const fileTokens = Math.ceil(files / bytesPerToken)
  return all - fileTokens + Math.min(fileTokens, maxFileTokens)
}

/** The tokens of repeated queries: a reranker reads the query again with each document. */
const repeatedTokens = (field: Field): number => {
  const query = field("query")
  const documents = field("documents")
  if (query === undefined || !Array.isArray(documents)) return 0
  const text = typeof query === "string" ? query : JSON.stringify(query)
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken) * Math.max(0, documents.length - 1)
}

const picturesOf = (field: Field): number => largest(field, pictureCounts)?.value ?? 1

/**
 * The tokens to reserve for a request and its answers: for each answer its limit, or 500 if the request states none. `bytes` is
 * the size of the request's body, `field` reads a field.
 */
export const tokenDemand = (operation: Operation, bytes: number, field: Field): TokenDemand => {
  if (operation.isFree === true) return { tokens: 1, stated: undefined }
  const request = requestTokens(operation, bytes, field)
  if (isChat(operation)) {
    const answers = answersOf(field)
    const { length, thought } = answers
    const each = (length?.value ?? defaultAnswerTokens) + (thought?.value ?? 0)
    return { tokens: Math.ceil(request + each * countOf(answers)), stated: statementOf(answers) }
  }
  const pictures = operation.workloads.includes("images") ? picturesOf(field) * pictureTokens : 0
  return { tokens: request + repeatedTokens(field) + pictures, stated: undefined }
}

/** The tokens that a request probably uses: most answers are far shorter than their limit. Does not look into files. */
export const tokenEstimate = (operation: Operation, bytes: number, field: Field): number => {
  if (operation.isFree === true) return 1
  const request = Math.max(1, Math.min(Math.ceil(bytes / bytesPerToken), maxFileTokens))
  if (!isChat(operation)) return request
  const answers = answersOf(field)
  const each = Math.min(answers.length?.value ?? defaultAnswerTokens, maxLikelyAnswerTokens)
  return Math.ceil(request + each * countOf(answers))
}

/** The length of a video to reserve for if a request does not state it. */
const secondsPerVideo = 10
/** Sound of 32 kbit/s, which is little even for speech, so that the seconds are not underestimated. */
const bytesPerSecond = 4_000
const documentsPerSearch = 100

/** The largest usage to expect, by which a request's cost is reserved. `maxAnswerTokens`: the model's longest answer, if known. */
export const largestUsage = (operation: Operation, bytes: number, field: Field, maxAnswerTokens?: number): Usage => {
  const used = (inputTokens: number, outputTokens = 0, others: Partial<Usage> = {}): Usage => ({
    inputTokens,
    outputTokens,
    ...others
  })
  if (operation.isFree === true) return used(0)
  const request = requestTokens(operation, bytes, field) + repeatedTokens(field)
  const { workloads } = operation
  if (isChat(operation)) {
    const answers = answersOf(field)
    const { length, thought } = answers
    const stated = length === undefined && thought === undefined
      ? undefined
      : (length?.value ?? 0) + (thought?.value ?? 0)
    const most = maxAnswerTokens ?? stated ?? maxLikelyAnswerTokens
    return used(request, Math.ceil(Math.min(stated ?? most, most) * countOf(answers)))
  }
  if (workloads.includes("images")) {
    const images = picturesOf(field)
    return used(request, images * pictureTokens, { images })
  }
  if (workloads.includes("video")) {
    const seconds = field("duration")
    return used(request, 0, { seconds: (typeof seconds === "number" ? seconds : secondsPerVideo) * picturesOf(field) })
  }
  if (workloads.includes("speech")) {
    return used(request, request, { characters: bytes, seconds: bytes / bytesPerSecond })
  }
  const documents = field("documents")
  const searchUnits = Array.isArray(documents) ? Math.ceil(documents.length / documentsPerSearch) : 0
  return used(request, 0, { searchUnits })
}
