/**
 * How many tokens a request may take, before a tokenizer or a provider has counted them: what the request states, multiplied
 * by how many answers it asks for, and an estimate of what it leaves open.
 */
import { Predicate } from "effect"
import type { Operation } from "./Operation.ts"

type Field = (name: string) => unknown

/** What a request says that its answers may take. */
export interface TokenStatement {
  readonly tokens: number
  /** The fields that say so, the first of them the one that says how long an answer may be. */
  readonly fields: readonly [string, ...Array<string>]
}

export interface TokenDemand {
  /** To be set aside for the request. At least 1. */
  readonly tokens: number
  /** Absent where the request leaves the length of its answers open. */
  readonly stated: TokenStatement | undefined
}

/** English text and JSON in UTF-8; other scripts take fewer bytes per token, pictures many more. */
const bytesPerToken = 4
/** The most that is set aside for pictures and other files in a request, whose bytes say nothing about tokens. */
const maxFileTokens = 50_000
/** An answer whose length the request leaves open. */
const defaultAnswerTokens = 500
/** A picture that is to be made, by a model that counts pictures in tokens. */
const pictureTokens = 1_000
/** The most that one answer is expected to take, however long it may become. */
const maxLikelyAnswerTokens = 4_000

const propertyOf = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

interface Stated {
  readonly name: string
  readonly value: number
}

/** Those of some fields that hold a number, none of them so large that a product is no number any more. */
const numbers = (candidates: Readonly<Record<string, unknown>>): ReadonlyArray<Stated> =>
  Object.entries(candidates).flatMap(([name, value]) =>
    typeof value === "number" && value >= 0 ? [{ name, value: Math.min(value, Number.MAX_SAFE_INTEGER) }] : []
  )

const largest = (stated: ReadonlyArray<Stated>): Stated | undefined =>
  stated.reduce<Stated | undefined>(
    (most, each) => most === undefined || each.value > most.value ? each : most,
    undefined
  )

interface Answers {
  /** How long one may be; `undefined` where that is open. */
  readonly length: Stated | undefined
  /** What may be thought beside it. */
  readonly thought: Stated | undefined
  /** What the number of answers is the product of. */
  readonly factors: ReadonlyArray<Stated>
}

/** Of several fields for the same, which a provider may choose between, the largest counts. */
const answersOf = (field: Field): Answers => {
  const config = field("generationConfig")
  const prompt = field("prompt")
  const length = largest(numbers({
    max_tokens: field("max_tokens"),
    max_completion_tokens: field("max_completion_tokens"),
    max_output_tokens: field("max_output_tokens"),
    "generationConfig.maxOutputTokens": propertyOf(config, "maxOutputTokens")
  }))
  const thought = largest(numbers({
    "thinking.budget_tokens": propertyOf(field("thinking"), "budget_tokens"),
    "generationConfig.thinkingConfig.thinkingBudget": propertyOf(propertyOf(config, "thinkingConfig"), "thinkingBudget")
  }))
  const choices = largest(numbers({
    n: field("n"),
    best_of: field("best_of"),
    "generationConfig.candidateCount": propertyOf(config, "candidateCount")
  }))
  const prompts = Array.isArray(prompt) ? { name: "prompt", value: prompt.length } : undefined
  const factors = [choices, prompts].filter((factor) => factor !== undefined).filter(({ value }) => value > 1)
  return { length, thought, factors }
}

const countOf = ({ factors }: Answers): number => factors.reduce((product, { value }) => product * value, 1)

/** Most providers count what is thought as part of the answer, so the longer of the two is what is surely allowed. */
const statementOf = (answers: Answers): TokenStatement | undefined => {
  const { factors, length, thought } = answers
  const most = largest([length, thought].filter((stated) => stated !== undefined))
  return most === undefined ? undefined : {
    tokens: Math.ceil(most.value * countOf(answers)),
    fields: [most.name, ...factors.map(({ name }) => name)]
  }
}

/** What is long and has the letters of base64 or of a data URL, at its begin, in its middle and at its end. */
const isFile = (text: string): boolean => {
  if (text.length < 4_096) return false
  const middle = text.length >> 1
  return [text.slice(0, 256), text.slice(middle, middle + 256), text.slice(-256)].every((part) =>
    /^[\w+/=:;,.-]*$/.test(part)
  )
}

/** How many characters of all texts in a value are files. */
const fileSize = (value: unknown): number => {
  if (typeof value === "string") return isFile(value) ? value.length : 0
  if (typeof value !== "object" || value === null) return 0
  let size = 0
  for (const each of Array.isArray(value) ? value : Object.values(value)) size += fileSize(each)
  return size
}

/** Where requests of chat models hold texts and files. */
const contentFields = ["messages", "contents", "input", "prompt", "system", "systemInstruction", "tools"]

const isText = ({ workloads }: Operation): boolean =>
  workloads.every((workload) => workload === "embeddings" || workload === "rerank")
const isChat = ({ workloads }: Operation): boolean => workloads.includes("chat")

/** Of the request itself. */
const requestTokens = (operation: Operation, bytes: number, field: Field): number => {
  const all = Math.max(1, Math.ceil(bytes / bytesPerToken))
  if (all <= maxFileTokens || isText(operation)) return all
  if (!isChat(operation)) return maxFileTokens
  const files = contentFields.reduce((size, name) => size + fileSize(field(name)), 0)
  const fileTokens = Math.ceil(files / bytesPerToken)
  return all - fileTokens + Math.min(fileTokens, maxFileTokens)
}

/** A reranker reads the query once more with each document. */
const repeatedTokens = (field: Field): number => {
  const query = field("query")
  const documents = field("documents")
  if (typeof query !== "string" || !Array.isArray(documents)) return 0
  return Math.ceil(Buffer.byteLength(query) / bytesPerToken) * Math.max(0, documents.length - 1)
}

const picturesOf = (field: Field): number =>
  largest(numbers({ n: field("n"), "parameters.n": propertyOf(field("parameters"), "n") }))?.value ?? 1

/** What a request may take at most where it says so, given the size of its body and how to read a field of it. */
export const tokenDemand = (operation: Operation, bytes: number, field: Field): TokenDemand => {
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

/** What a request will likely take: most answers are far shorter than they may be, and files are not looked into. */
export const tokenEstimate = (operation: Operation, bytes: number, field: Field): number => {
  const request = Math.max(1, Math.min(Math.ceil(bytes / bytesPerToken), maxFileTokens))
  if (!isChat(operation)) return request
  const answers = answersOf(field)
  const each = Math.min(answers.length?.value ?? defaultAnswerTokens, maxLikelyAnswerTokens)
  return Math.ceil(request + each * countOf(answers))
}
