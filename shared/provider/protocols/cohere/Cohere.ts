/**
 * The `cohere` protocol: Cohere, and servers that speak its rerank dialect, such as Jina and vLLM. Its `baseUrl` has no version,
 * as in the official client.
 *
 * Rerank is relayed: only the model's name and a missing id change in the answer. Servers of the OpenAI dialect rerank in the same way.
 * Embeddings for Cohere's clients are relayed too; `CohereEmbed.ts` translates those for other clients. Chat is always translated,
 * because no client of the gateway speaks Cohere's dialect.
 */
import { Effect, Predicate } from "effect"
import { randomUUID } from "node:crypto"
import type { JobError } from "../../../contract/JobError.ts"
import { embed } from "../../../contract/operations/embeddings/Embed.ts"
import { rerank } from "../../../contract/operations/Rerank.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import { type AnswerGrammar, membersNamed } from "../../exchange/AnswerGrammar.ts"
import { isFailure, type Read } from "../../exchange/AnswerReader.ts"
import { bearer, exchange, type ExchangeTools, type GuardedTools } from "../../exchange/Exchange.ts"
import { PassingAnswer } from "../../exchange/PassingAnswer.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as JsonText from "../../json/JsonText.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import { type Call, type Perform, performByName } from "../../call/Protocol.ts"
import { optionsOf } from "../../dialects/cohere/CohereOptions.ts"
import * as HttpCall from "../../exchange/HttpCall.ts"
import { cohereChat } from "./CohereChat.ts"
import * as CohereEmbed from "./CohereEmbed.ts"
import { usageIn } from "./RerankUsage.ts"

/** The names of the operations. */
export const operations = [...Embeddings.operations, rerank.name, ...HttpCall.operationsOf(cohereChat)]

export const countCalls = HttpCall.counter({
  ...cohereChat,
  embeddings: CohereEmbed.api,
  relays: new Set([embed.name, rerank.name])
})

export const make = (tools: GuardedTools): Perform => {
  const chats = HttpCall.make(cohereChat, tools)
  return performByName(
    new Map([
      ...HttpCall.operationsOf(cohereChat).map((name) => [name, chats] as const),
      ...Embeddings.performs(CohereEmbed.make(tools), { hasPurposes: true }),
      [embed.name, relayEmbed(tools)],
      [rerank.name, relay(tools, pathOf)]
    ])
  )
}

/** Reranks at this path below `baseUrl`; `others` serves every other operation. */
export const beside = (others: Perform, tools: ExchangeTools, path: string): Perform => {
  const ranking = relay(tools, () => Effect.succeed(path))
  return (call, sink) => (call.operation.name === rerank.name ? ranking : others)(call, sink)
}

const pathOf = (endpoint: Endpoint): Effect.Effect<string, JobError> =>
  Effect.map(optionsOf(endpoint), ({ rerankPath = "/v1/rerank" }) => rerankPath)

// Request

/** The client's body with the model's name at the provider. Makes a list of `documents`, since servers reject a single string. */
const toBody = (call: Call): Uint8Array => {
  const body = new RelayedBody(call)
  if (call.endpoint.model !== call.model) body.set("model", call.endpoint.model)
  const documents = body.valueOf("documents")
  if (typeof documents === "string") body.set("documents", [documents])
  return body.toBytes()
}

// Answer

const grammar: AnswerGrammar = {
  done: "dropped",
  marks: membersNamed(),
  modelPaths: [["model"]],
  // a body without results is an error
  read: ({ meta = null, results, usage = null }) =>
    Array.isArray(results) ? { usage: usageIn({ meta, usage }) } : { isError: true },
  // rerank has no streams
  isLast: () => true
}

class RankedAnswer extends PassingAnswer {
  override whole(body: Uint8Array): Read {
    const read = super.whole(body)
    return isFailure(read) || typeof read === "function" ? read : read.map(withId)
  }
}

const withId = (body: Uint8Array): Uint8Array => {
  const members = JsonText.members(body) ?? []
  return members.some(({ name }) => name === "id")
    ? body
    : JsonText.setMembers(body, members, new Map([["id", randomUUID()]]))
}

const vectors: AnswerGrammar = {
  ...grammar,
  modelPaths: [],
  read: ({ embeddings, meta = null }) =>
    Predicate.isReadonlyObject(embeddings) ? { usage: usageIn({ meta }) } : { isError: true }
}

const relayEmbed = (tools: ExchangeTools): Perform => (call, sink) => {
  const body = new RelayedBody(call)
  body.setModel()
  return exchange({
    ...tools,
    authorize: bearer,
    call,
    sink,
    request: {
      path: CohereEmbed.path,
      body: body.toBytes(undefined),
      contentType: call.contentType,
      streams: false
    },
    reader: (secrets) => new PassingAnswer({ call, grammar: vectors, secrets })
  })
}

const relay = (
  tools: ExchangeTools,
  pathOf: (endpoint: Endpoint) => Effect.Effect<string, JobError>
): Perform =>
(call, sink) =>
  Effect.flatMap(pathOf(call.endpoint), (path) =>
    exchange({
      ...tools,
      authorize: bearer,
      call,
      sink,
      request: { path, body: toBody(call), contentType: call.contentType, streams: false },
      reader: (secrets) => new RankedAnswer({ call, grammar, secrets })
    }))
