/**
 * The `openai` protocol: any server of the OpenAI dialect. Relays the requests of clients of that dialect, for all operations;
 * `OpenAiResponses.ts` has the responses API. In a request, only the model's name, `stream_options`, `prompt_cache_key` and other
 * providers' reasoning change; in an answer, only the model's name, the encoding of vectors and missing usage. Unknown fields pass in
 * both directions.
 */
import * as UsageSum from "../../../contract/UsageSum.ts"
import { sendsCacheKey } from "../../../catalogue/Provider.ts"
import { audioSpeech, countCharacters } from "../../../contract/operations/audio/Speech.ts"
import { transcriptions, translations } from "../../../contract/operations/audio/Transcriptions.ts"
import { chatCompletions } from "../../../contract/operations/ChatCompletions.ts"
import { embeddings, engineEmbeddings } from "../../../contract/operations/embeddings/Embeddings.ts"
import { imageEdits } from "../../../contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../contract/operations/ImageGenerations.ts"
import { moderations } from "../../../contract/operations/Moderations.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Operation } from "../../../contract/Operation.ts"
import { hasSeveralChoices } from "../../../contract/TokenEstimate.ts"
import { isDiscarded } from "../../../contract/Owner.ts"
import { chatCompletionsProvider } from "../../dialects/openai/ChatCompletionsProvider.ts"
import {
  type AnswerGrammar,
  anyOf,
  choiceParts,
  type Content,
  contentOfAll,
  membersNamed,
  reasonNamed
} from "../../exchange/AnswerGrammar.ts"
import { bearer } from "../../exchange/Exchange.ts"
import type { HttpProtocol, Relayed } from "../../exchange/HttpProtocol.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as FinishReasons from "../../dialects/finish/FinishReasons.ts"
import * as Json from "../../json/Json.ts"
import type { Call } from "../../call/Protocol.ts"
import { isForm } from "../../call/RequestBody.ts"
import type { Recipient } from "../../dialects/conversation/Signature.ts"
import * as Base64Vectors from "./Base64Vectors.ts"
import * as MultipartText from "./MultipartText.ts"
import {
  findUsage,
  toEmbeddingUsage,
  toTokenUsage,
  transcriptUsageOf,
  usageMembers,
  usageOf
} from "../../dialects/openai/OpenAiUsage.ts"

const chatPath = "/chat/completions"
const embeddingsPath = "/embeddings"

export const imagePaths = { generations: "/images/generations", edits: "/images/edits" } as const

/** The path of each operation below `baseUrl`. */
const paths: ReadonlyMap<string, string> = new Map([
  [chatCompletions.name, chatPath],
  ["completions", "/completions"],
  [embeddings.name, embeddingsPath],
  [engineEmbeddings.name, embeddingsPath],
  ["audio.speech", "/audio/speech"],
  [transcriptions.name, "/audio/transcriptions"],
  [translations.name, "/audio/translations"],
  [moderations.name, "/moderations"],
  ["images.generations", imagePaths.generations],
  ["images.edits", imagePaths.edits]
])

// Request

const relay = (path: string) => (call: Call, recipient?: Recipient): Relayed | InvalidRequest =>
  isForm(call) ? relayForm(call, path) : relayJson(call, path, recipient)

/** The client's form with the model's name at the provider. */
const relayForm = (call: Call, path: string): Relayed | InvalidRequest => {
  const { contentType, endpoint: { model }, isPlain = false, operation } = call
  const streams = !isPlain && MultipartText.valueOf(call.body, contentType, "stream") === "true"
  const body = model === call.model ? call.body : MultipartText.setField(call.body, contentType, "model", model)
  return body === undefined
    ? InvalidRequest.at("model", "cannot be found in the form", "invalid_form")
    : { path, body, contentType, streams, noEstimate: true, ...metering(operation, () => undefined) }
}

/** Meters billed units that the dialect's usage does not include: pictures, and characters of speech. */
const metering = ({ name }: Operation, valueOf: (field: string) => unknown): Pick<Relayed, "grammar" | "usage"> => {
  const grammar = grammars.get(name)
  const text = name === audioSpeech.name ? valueOf("input") : undefined
  return {
    ...(grammar === undefined ? {} : { grammar }),
    ...(typeof text === "string"
      ? { usage: { inputTokens: 0, outputTokens: 0, characters: countCharacters(text) } }
      : {})
  }
}

/** The client's body with the model's name at the provider, and with a request for usage in streams. */
const relayJson = (call: Call, path: string, recipient: Recipient | undefined): Relayed => {
  const { contentType, endpoint: { provider }, operation, session } = call
  const body = new RelayedBody(call, recipient)
  const asked = { stream: body.streams, stream_format: Json.string(body.valueOf("stream_format")) }
  const streams = call.isPlain !== true && operation.streams(asked)
  body.setModel()
  let showUsage = false
  // the events of pictures and speech always have usage
  if (streams && !grammars.has(operation.name)) {
    const options = Json.fields(body.valueOf("stream_options"))
    showUsage = options["include_usage"] === true
    if (!showUsage) body.set("stream_options", { ...options, include_usage: true })
  }
  const isChat = operation.name === chatCompletions.name
  if (isChat && isDiscarded(call) && body.valueOf("store") === true) body.set("store", false)
  const takesSession = isChat && session !== undefined && sendsCacheKey(provider)
  if (takesSession && !body.has("prompt_cache_key")) body.set("prompt_cache_key", session)
  const wantsBase64 = path === embeddingsPath && body.valueOf("encoding_format") === "base64"
  return {
    path,
    body: body.toBytes(isChat ? "messages" : undefined),
    contentType,
    streams,
    showUsage,
    hasSeveralChoices: streams && hasSeveralChoices((name) => body.valueOf(name)),
    noEstimate: operation.isFree ?? false,
    ...(wantsBase64 ? { rewrite: Base64Vectors.rewrite() } : {}),
    ...metering(operation, (field) => body.valueOf(field))
  }
}

// Answer

const choicesIn = ({ choices }: Json.Fields) => choiceParts(choices, "finish_reason")

const hasFailed = (choice: unknown): boolean => FinishReasons.isFailure(Json.fields(choice)["finish_reason"])

const unmetered: AnswerGrammar = {
  done: "ends",
  marks: membersNamed(...usageMembers, "error"),
  modelPaths: [["model"]],
  read: (data) => {
    const { choices, error } = data
    if ((error !== undefined && error !== null) || Json.list(choices).some(hasFailed)) return { isError: true }
    const found = findUsage(data)
    return found === undefined ? {} : { ...found, isOnlyUsage: Array.isArray(choices) && choices.length === 0 }
  },
  isLast: (data) => choicesIn(data).some(({ isLast }) => isLast)
}

export const plain: AnswerGrammar = { ...unmetered, toUsage: toTokenUsage }

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)

const isCall = (reason: unknown): boolean => FinishReasons.toFinish(String(reason)) === "tool_calls"

const contentOfChoice = (choice: unknown): Content | undefined => {
  const { delta, finish_reason: reason, text } = Json.fields(choice)
  return contentOfAll([
    FinishReasons.reasonIn(reason) === undefined ? undefined : isCall(reason) ? "other" : "text",
    isEmpty(text) ? undefined : "text",
    ...Object.entries(Json.fields(delta)).map(([name, value]) => {
      if (name === "role" || isEmpty(value)) return undefined
      return name === "content" && typeof value === "string" ? "text" : "other"
    })
  ])
}

/** The grammar of answers of chat and of text completions. */
const grammar: AnswerGrammar = {
  ...plain,
  marks: anyOf(plain.marks, reasonNamed("finish_reason")),
  choicesIn,
  contentOf: ({ choices }) => Array.isArray(choices) ? contentOfAll(choices.map(contentOfChoice)) : "other",
  textMark: /"(?:content|text)": ?"[^"\\]/,
  damagedText: /^(?!.*"(?:tool_calls|function_call)").*"(?:content|text)"\s*:/s
}

/** The grammar of answers with a list of results. A body without one is an error. */
const results: AnswerGrammar = {
  ...plain,
  toUsage: toEmbeddingUsage,
  read: (answer, before) => Array.isArray(answer["data"]) ? plain.read(answer, before) : { isError: true }
}

/** The grammar of moderations. A body without results is an error. */
const judgements: AnswerGrammar = { ...unmetered, read: ({ results }) => ({ isError: !Array.isArray(results) }) }

/** The vectors in the order of the texts. */
const vectorsIn = ({ data }: Json.Fields): unknown =>
  Json.list(data).map(Json.fields).toSorted((a, b) => Number(a["index"]) - Number(b["index"])).map((item) =>
    item["embedding"]
  )

/** How to make vectors for clients of other dialects. */
const vectors: NonNullable<HttpProtocol<never>["embeddings"]> = {
  path: () => embeddingsPath,
  textsPerCall: 2_048,
  toBody: (model, { dimensions, texts }) => ({ model, input: texts, encoding_format: "float", dimensions }),
  vectorsIn,
  tokensIn: ({ usage }) => usageOf(usage)?.inputTokens,
  lost: (names) => names
}

/** Whether this is an event of a stream of pictures, and whether it ends one. */
const isOfPictures = ({ type }: Json.Fields): boolean => typeof type === "string" && type.startsWith("image_")
const isPicture = (event: Json.Fields): boolean => isOfPictures(event) && String(event["type"]).endsWith(".completed")

/** The grammar of answers with pictures, which are counted because not every model reports tokens. */
const pictures: AnswerGrammar = {
  ...results,
  marks: anyOf(results.marks, /image_\w+\.completed"/),
  isLast: isPicture,
  read: (answer, before) => {
    if (isOfPictures(answer)) {
      const { isError, usage } = plain.read(answer, undefined)
      if (isError === true) return { isError }
      // each picture of a stream has its own usage
      return isPicture(answer) ? { usage: UsageSum.sum(before, { ...UsageSum.none, ...usage, images: 1 }) } : {}
    }
    const reading = results.read(answer, before)
    const usage = reading.usage ?? { inputTokens: 0, outputTokens: 0 }
    return reading.isError === true ? reading : { usage: { ...usage, images: Json.list(answer["data"]).length } }
  }
}

const isEndOfSound = ({ type }: Json.Fields): boolean => type === "speech.audio.done"

/** The grammar of answers with sound, which may be a stream of events. JSON instead of sound is an error. */
const sound: AnswerGrammar = {
  ...plain,
  marks: anyOf(plain.marks, /speech\.audio\.done"/),
  isLast: isEndOfSound,
  read: (event, before) =>
    isEndOfSound(event) || event["type"] === "speech.audio.delta" ? plain.read(event, before) : { isError: true }
}

/** The grammar of transcripts in JSON or as a stream. Transcripts in other formats are passed on unread. */
const transcripts: AnswerGrammar = {
  ...unmetered,
  marks: anyOf(unmetered.marks, /transcript\.text\.done"/),
  modelPaths: [],
  read: (answer) => {
    const { text, type } = answer
    const isPart = typeof text === "string" || String(type).startsWith("transcript.")
    return isPart ? { usage: transcriptUsageOf(answer) } : { isError: true }
  },
  isLast: ({ type }) => type === "transcript.text.done"
}

/** The operations whose answers differ from the dialect's others. */
const grammars: ReadonlyMap<string, AnswerGrammar> = new Map([
  [embeddings.name, results],
  [engineEmbeddings.name, results],
  [imageGenerations.name, pictures],
  [imageEdits.name, pictures],
  [audioSpeech.name, sound],
  [transcriptions.name, transcripts],
  [translations.name, transcripts],
  [moderations.name, judgements]
])

export const openAi: HttpProtocol<typeof chatCompletionsProvider.options.Type> = {
  authorize: bearer,
  relays: new Map([...paths].map(([name, path]) => [name, relay(path)])),
  grammar,
  embeddings: vectors,
  chat: { dialect: chatCompletionsProvider, path: () => chatPath }
}
