/**
 * The responses API of the `openai` protocol. A provider that has this API gets requests in that format as the client sent them, except
 * that it is told to store nothing and to return reasoning encrypted. It also counts the tokens for all clients. A provider that has
 * only this API gets the requests of all chat clients.
 */
import { Struct } from "effect"
import { chatApisOf, sendsCacheKey } from "../../../catalogue/Provider.ts"
import { compaction } from "../../../contract/operations/Compaction.ts"
import { firstEvents, lastEvents } from "../../../contract/http/ResponseEvents.ts"
import { responses } from "../../../contract/operations/Responses.ts"
import { responsesCount, ResponsesCountRequest } from "../../../contract/operations/TokenCounts.ts"
import { newResponseId } from "../../../contract/ResponseId.ts"
import type { CountCalls } from "../../call/Calls.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import type { Recipient } from "../../dialects/conversation/Signature.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import * as CountDialects from "../../dialects/CountDialects.ts"
import { toCompactionUsage, usageOf } from "../../dialects/openai/OpenAiUsage.ts"
import { responsesProvider } from "../../dialects/responses/ResponsesProvider.ts"
import { encryptedReasoning } from "../../dialects/responses/ResponsesRequest.ts"
import { type AnswerGrammar, type Content, membersNamed } from "../../exchange/AnswerGrammar.ts"
import { bearer, type GuardedTools } from "../../exchange/Exchange.ts"
import * as HttpCall from "../../exchange/HttpCall.ts"
import type { HttpProtocol, Relayed } from "../../exchange/HttpProtocol.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as Json from "../../json/Json.ts"
import { openAi, plain } from "./OpenAi.ts"

const path = "/responses"
const countPath = `${path}/input_tokens`

/** The fields that the counting of tokens accepts. OpenAI rejects all others. */
const counted = Struct.keys(ResponsesCountRequest.fields)

/** The member of reasoning and of compactions that only the provider's account can read. */
const sealedMember = "encrypted_content"

// Requests

const relay = (call: Call, recipient?: Recipient): Relayed => {
  const { contentType, endpoint: { provider }, session } = call
  const body = new RelayedBody(call, recipient)
  body.setModel()
  body.set("store", false)
  const include = Json.list(body.valueOf("include"))
  if (provider.options?.["encryptedReasoning"] !== false && !include.includes(encryptedReasoning)) {
    body.set("include", [...include, encryptedReasoning])
  }
  if (session !== undefined && sendsCacheKey(provider) && !body.has("prompt_cache_key")) {
    body.set("prompt_cache_key", session)
  }
  return { path, body: body.toBytes("input", "responses"), contentType, streams: body.streams, id: newResponseId() }
}

const relayCompaction = (call: Call, recipient?: Recipient): Relayed => {
  const body = new RelayedBody(call, recipient)
  body.setModel()
  const { contentType } = call
  const grammar = { ...plain, toUsage: toCompactionUsage, sealedMember }
  return { path: `${path}/compact`, body: body.toBytes("input", "responses"), contentType, streams: false, grammar }
}

const relayCount = (call: Call, recipient?: Recipient): Relayed => {
  const body = new RelayedBody(call, recipient)
  body.setModel()
  return {
    path: countPath,
    body: body.toBytes("input", "responses"),
    contentType: call.contentType,
    streams: false,
    noEstimate: true
  }
}

// Answers

/** Events that only announce what follows. */
const announcements: ReadonlySet<unknown> = new Set([
  ...firstEvents,
  "response.output_item.added",
  "response.content_part.added",
  "response.reasoning_summary_part.added"
])

const contentOf = ({ type }: Json.Fields): Content | undefined =>
  announcements.has(type) ? undefined : type === "response.output_text.delta" || lastEvents.has(type) ? "text" : "other"

const grammar: AnswerGrammar = {
  // some servers send it, although OpenAI does not, even after an answer that broke off
  done: "passed",
  marks: membersNamed("response", "error"),
  modelPaths: [["response", "model"], ["model"]],
  idPaths: [["response", "id"], ["id"]],
  sealedMember,
  read: ({ error, response, type, usage }) => {
    const { error: within, usage: total } = Json.fields(response)
    return type === "error" || (error ?? within ?? null) !== null
      ? { isError: true }
      : { usage: usageOf(total ?? usage) }
  },
  isLast: ({ type }) => lastEvents.has(type),
  contentOf,
  textMark: /"response\.output_text\.delta"/,
  // the last events repeat the text, and responses the instructions and tools of the request
  newText: { data: /"type": ?"response\.[\w.]+\.delta"/, member: "output" }
}

// The protocol

const openAiResponses: HttpProtocol<typeof responsesProvider.options.Type> = {
  authorize: bearer,
  relays: new Map([[responses.name, relay], [compaction.name, relayCompaction], [responsesCount.name, relayCount]]),
  grammar,
  chat: {
    dialect: responsesProvider,
    path: () => path,
    count: { path: () => countPath, toBody: (request) => Struct.pick(request, counted), tokens: "input_tokens" }
  }
}

/** Whether to send this call to the provider's responses API. Answers are continued with the other API, if the provider has it. */
export const isServedByResponses = ({ continues, endpoint: { provider }, operation: { name } }: Call): boolean => {
  if (provider.protocol !== "openai") return false
  const isItsOwn = openAiResponses.relays.has(name) || CountDialects.operations.includes(name)
  if (!isItsOwn && !ClientDialects.operations.includes(name)) return false
  const apis = chatApisOf(provider)
  return apis.includes("responses") && ((isItsOwn && continues === undefined) || !apis.includes("chatCompletions"))
}

const countByResponses = HttpCall.counter(openAiResponses)
const countByOthers = HttpCall.counter(openAi)

export const countCalls: CountCalls = (call) => (isServedByResponses(call) ? countByResponses : countByOthers)(call)

/** Makes calls by the API that the provider has. */
export const make = (tools: GuardedTools): Perform => {
  const byResponses = HttpCall.make(openAiResponses, tools)
  const byOthers = HttpCall.make(openAi, tools)
  return (call, sink) => (isServedByResponses(call) ? byResponses : byOthers)(call, sink)
}
