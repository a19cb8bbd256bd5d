/** The `gemini` protocol: Google's Gemini API. Its `baseUrl` ends in the version: `…/v1beta`. */
import { Predicate } from "effect"
import { spellingsOf } from "../../../contract/http/FieldSpelling.ts"
import { generateContent, streamGenerateContent } from "../../../contract/operations/GenerateContent.ts"
import { batchEmbedContents, embedContent } from "../../../contract/operations/embeddings/EmbedContent.ts"
import { countTokens } from "../../../contract/operations/TokenCounts.ts"
import { hasSeveralChoices } from "../../../contract/TokenEstimate.ts"
import { generateContentProvider } from "../../dialects/gemini/GenerateContentProvider.ts"
import {
  type AnswerGrammar,
  anyOf,
  choiceParts,
  type Content,
  contentOfAll,
  membersNamed,
  reasonNamed
} from "../../exchange/AnswerGrammar.ts"
import type { HttpProtocol, Relayed } from "../../exchange/HttpProtocol.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as Json from "../../json/Json.ts"
import * as FinishReasons from "../../dialects/finish/FinishReasons.ts"
import * as Signature from "../../dialects/conversation/Signature.ts"
import type { Call } from "../../call/Protocol.ts"
import { taskTypes } from "../../dialects/embeddings/GeminiForm.ts"
import { usageOf } from "../../dialects/gemini/GeminiUsage.ts"

/** The resource name of a model. The name of a tuned model already begins with its collection. */
const resourceOf = (model: string): string => /^(?:models|tunedModels)\//.test(model) ? model : `models/${model}`

const streamed = "streamGenerateContent?alt=sse"
const batch = "batchEmbedContents"
type Method = "generateContent" | typeof streamed | "countTokens" | "embedContent" | typeof batch

const pathOf = (model: string, method: Method): string => {
  const resource = resourceOf(model).split("/").map(encodeURIComponent).join("/")
  return `/${resource}:${method}`
}

// Request

/** The field with the request whose tokens are counted, in both spellings of Google's JSON. */
const wholeRequest = spellingsOf("generateContentRequest")

const relay = (method: Method) => (call: Call, recipient?: Signature.Recipient): Relayed => {
  const { contentType, endpoint: { model }, operation: { isFree = false } } = call
  const body = new RelayedBody(call, recipient)
  // the path names the model; the body must not contradict it
  if (model !== call.model && body.valueOf("model") !== undefined) body.set("model", resourceOf(model))
  // to count a whole request, it must name the model
  const counted = method === "countTokens" ? wholeRequest.find((name) => body.has(name)) : undefined
  const inner = counted === undefined ? undefined : body.exactValueOf(counted)
  if (counted !== undefined && Predicate.isReadonlyObject(inner)) {
    const path = `${counted}.contents`
    const contents = recipient === undefined
      ? inner["contents"]
      : Signature.toRelayed(inner["contents"], path, "gemini", recipient)
    body.set(counted, { ...inner, contents, model: resourceOf(model) })
  }
  return {
    path: pathOf(model, method),
    body: body.toBytes("contents", "gemini"),
    contentType,
    streams: method === streamed,
    hasSeveralChoices: method === streamed && hasSeveralChoices((name) => body.valueOf(name)),
    noEstimate: isFree
  }
}

/** Relays requests for vectors. The path names the model, and each request of a batch must name the same one. */
const relayVectors = (method: "embedContent" | typeof batch) => (call: Call): Relayed => {
  const { contentType, endpoint: { model } } = call
  const body = new RelayedBody(call)
  if (body.has("model")) body.set("model", resourceOf(model))
  if (method === batch) {
    const requests = Json.list(body.exactValueOf("requests"))
    body.set("requests", requests.map((request) => ({ ...Json.fields(request), model: resourceOf(model) })))
  }
  const bytes = body.toBytes(undefined)
  return { path: pathOf(model, method), body: bytes, contentType, streams: false, grammar: vectorsGrammar }
}

/** How to make vectors for clients of other dialects. */
const vectors: NonNullable<HttpProtocol<never>["embeddings"]> = {
  path: (model) => pathOf(model, batch),
  textsPerCall: 100,
  toBody: (model, { dimensions, purpose, texts }) => ({
    requests: texts.map((text) => ({
      model: resourceOf(model),
      content: { parts: [{ text }] },
      taskType: purpose && taskTypes[purpose],
      outputDimensionality: dimensions
    }))
  }),
  vectorsIn: ({ embeddings }) => Json.list(embeddings).map((each) => Json.fields(each)["values"]),
  tokensIn: ({ usageMetadata }) => usageOf(usageMetadata)?.inputTokens,
  lost: (names) => names,
  hasPurposes: true
}

// Answer

const contentOfPart = (part: unknown): Content | undefined => {
  const { text, ...others } = Json.fields(part)
  if (Object.keys(others).length > 0) return "other"
  return text === "" ? undefined : "text"
}

const contentOfCandidate = (candidate: unknown): Content | undefined => {
  const { content, finishReason: reason } = Json.fields(candidate)
  return contentOfAll([
    FinishReasons.reasonIn(reason) !== undefined
      ? reason === "STOP" || reason === "MAX_TOKENS" ? "text" : "other"
      : undefined,
    ...Json.list(Json.fields(content)["parts"]).map(contentOfPart)
  ])
}

const choicesIn = ({ candidates }: Json.Fields) => choiceParts(candidates, "finishReason")

const grammar: AnswerGrammar = {
  done: "dropped",
  // every frame has usage: the last one is read
  marks: anyOf(membersNamed("error"), reasonNamed("finishReason"), reasonNamed("blockReason")),
  modelPaths: [["modelVersion"]],
  read: ({ error, usageMetadata }) =>
    error !== undefined && error !== null ? { isError: true } : { usage: usageOf(usageMetadata) },
  isLast: (data) =>
    FinishReasons.reasonIn(Json.fields(data["promptFeedback"])["blockReason"]) !== undefined ||
    choicesIn(data).some(({ isLast }) => isLast),
  choicesIn,
  contentOf: ({ candidates, promptFeedback }) =>
    promptFeedback === undefined ? contentOfAll(Json.list(candidates).map(contentOfCandidate)) : "other",
  damagedText: /^(?!.*"(?:functionCall|thought\w*|inlineData)").*"text"\s*:/s
}

/** Answers with vectors. A body without any is an error. */
const vectorsGrammar: AnswerGrammar = {
  ...grammar,
  read: (answer, before) =>
    answer["embedding"] ?? answer["embeddings"] ? grammar.read(answer, before) : { isError: true }
}

export const gemini: HttpProtocol<typeof generateContentProvider.options.Type> = {
  authorize: (key) => ({ "x-goog-api-key": key }),
  relays: new Map([
    [generateContent.name, relay("generateContent")],
    [streamGenerateContent.name, relay(streamed)],
    [countTokens.name, relay("countTokens")],
    [embedContent.name, relayVectors("embedContent")],
    [batchEmbedContents.name, relayVectors(batch)]
  ]),
  grammar,
  embeddings: vectors,
  chat: {
    dialect: generateContentProvider,
    path: (model, streams) => pathOf(model, streams ? streamed : "generateContent"),
    count: {
      path: (model) => pathOf(model, "countTokens"),
      toBody: (request, model) => ({ generateContentRequest: { ...request, model: resourceOf(model) } }),
      tokens: "totalTokens"
    }
  }
}
