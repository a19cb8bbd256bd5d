/**
 * The `openai` protocol: any server that speaks the OpenAI dialect. Clients that speak it too are relayed, with all their
 * operations: the request goes out byte for byte but for the model's name and `stream_options`, the answer comes back but
 * for the model's alias and for vectors in another encoding than was asked for, and unknown fields pass in both directions.
 */
import { audioSpeech, countCharacters } from "../../../contract/operations/AudioSpeech.ts"
import { chatCompletions } from "../../../contract/operations/ChatCompletions.ts"
import { embeddings, engineEmbeddings } from "../../../contract/operations/Embeddings.ts"
import { imageEdits } from "../../../contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../contract/operations/ImageGenerations.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Operation } from "../../../contract/Operation.ts"
import { chatCompletionsProvider } from "../../dialects/openai/ChatCompletionsProvider.ts"
import type { AnswerGrammar } from "../../exchange/AnswerGrammar.ts"
import type { HttpProtocol, Relayed } from "../../exchange/HttpProtocol.ts"
import * as RelayedBody from "../../exchange/RelayedBody.ts"
import * as Json from "../../json/Json.ts"
import * as JsonText from "../../json/JsonText.ts"
import type { Call } from "../../call/Protocol.ts"
import * as Base64Vectors from "./Base64Vectors.ts"
import * as MultipartText from "./MultipartText.ts"
import { usageOf } from "../../dialects/openai/OpenAiUsage.ts"

const chatPath = "/chat/completions"
const embeddingsPath = "/embeddings"

export const imagePaths = { generations: "/images/generations", edits: "/images/edits" } as const

/** Where each operation lives below `baseUrl`. */
const paths: ReadonlyMap<string, string> = new Map([
  [chatCompletions.name, chatPath],
  ["completions", "/completions"],
  [embeddings.name, embeddingsPath],
  [engineEmbeddings.name, embeddingsPath],
  ["responses.compact", "/responses/compact"],
  ["audio.speech", "/audio/speech"],
  ["images.generations", imagePaths.generations],
  ["images.edits", imagePaths.edits]
])

// Request

const relayed = (call: Call): Relayed | InvalidRequest | undefined => {
  const path = paths.get(call.operation.name)
  if (path === undefined) return undefined
  return /^multipart\/form-data\s*;/i.test(call.contentType) ? relayedForm(call, path) : relayedJson(call, path)
}

/** The client's form with the provider's name of the model. */
const relayedForm = (call: Call, path: string): Relayed | InvalidRequest => {
  const { contentType, endpoint: { model } } = call
  const body = model === call.model ? call.body : MultipartText.setField(call.body, contentType, "model", model)
  return body === undefined
    ? InvalidRequest.at("model", "cannot be found in the form", "invalid_form")
    : { path, body, contentType, streams: false, showUsage: false, ...metering(call.operation, () => undefined) }
}

/** By what is billed that the dialect's usage does not tell: pictures, and the text that is read aloud. */
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

/** The client's body with the provider's name of the model, and with usage asked for so that it can be metered. */
const relayedJson = (call: Call, path: string): Relayed => {
  const { body, contentType, endpoint: { model }, operation } = call
  const members = JsonText.members(body) ?? []
  const streams = JsonText.valueOf(body, members, "stream") === true
  const changes = new Map<string, unknown>()
  // where the path named the model, the body need not name it, or not the same
  if (JsonText.valueOf(body, members, "model") !== model) changes.set("model", model)
  let showUsage = false
  if (streams) {
    const options = Json.fields(JsonText.valueOf(body, members, "stream_options"))
    showUsage = options["include_usage"] === true
    if (!showUsage) changes.set("stream_options", { ...options, include_usage: true })
  }
  const history = operation.name === chatCompletions.name ? "messages" : undefined
  const wantsBase64 = path === embeddingsPath && JsonText.valueOf(body, members, "encoding_format") === "base64"
  return {
    path,
    body: RelayedBody.edit(call, members, changes, history),
    contentType,
    streams,
    showUsage,
    ...(wantsBase64 ? { rewrite: Base64Vectors.rewrite() } : {}),
    ...metering(operation, (field) => JsonText.valueOf(body, members, field))
  }
}

// Answer

const grammar: AnswerGrammar = {
  terminator: Buffer.from("[DONE]"),
  marks: [Buffer.from("\"usage\""), Buffer.from("\"error\"")],
  modelPaths: [["model"]],
  read: ({ choices, error, usage: reported }) => {
    if (error !== undefined && error !== null) return { isError: true }
    const usage = usageOf(reported)
    return usage === undefined ? {} : { usage, isOnlyUsage: Array.isArray(choices) && choices.length === 0 }
  },
  isLast: ({ choices }) => Json.list(choices).some((choice) => typeof Json.fields(choice)["finish_reason"] === "string")
}

/** Answers with a list of results. Whatever has none is no answer, and may say why. */
const results: AnswerGrammar = {
  ...grammar,
  read: (answer, before) => Array.isArray(answer["data"]) ? grammar.read(answer, before) : { isError: true }
}

/** Answers with pictures, which are counted: not every model tells of tokens. */
const pictures: AnswerGrammar = {
  ...results,
  read: (answer, before) => {
    const reading = results.read(answer, before)
    const usage = reading.usage ?? { inputTokens: 0, outputTokens: 0 }
    return reading.isError === true ? reading : { usage: { ...usage, images: Json.list(answer["data"]).length } }
  }
}

/** Sound is no JSON, whatever that says. */
const sound: AnswerGrammar = { ...grammar, read: () => ({ isError: true }) }

/** How the answers of operations read that have more to say, or less, than the dialect's others. */
const grammars: ReadonlyMap<string, AnswerGrammar> = new Map([
  [embeddings.name, results],
  [engineEmbeddings.name, results],
  [imageGenerations.name, pictures],
  [imageEdits.name, pictures],
  [audioSpeech.name, sound]
])

export const openAi: HttpProtocol<typeof chatCompletionsProvider.options.Type> = {
  authorize: (key) => ({ authorization: `Bearer ${key}` }),
  relayed,
  grammar,
  chat: { dialect: chatCompletionsProvider, path: () => chatPath }
}
