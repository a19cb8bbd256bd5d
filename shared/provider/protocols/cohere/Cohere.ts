/**
 * The `cohere` protocol: Cohere, and servers that speak its rerank, as Jina, vLLM and others do. Its `baseUrl` is without a
 * version, as the official client takes it.
 *
 * Clients speak its rerank too and are relayed: the answer comes back as it is, but for the model's alias and for an id
 * where it has none. Servers of the OpenAI dialect rerank in the same way. Embeddings are translated, in `CohereEmbed.ts`.
 */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { JobError } from "../../../contract/JobError.ts"
import { rerank } from "../../../contract/operations/Rerank.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import type { AnswerGrammar } from "../../exchange/AnswerGrammar.ts"
import { isFailure, type Read } from "../../exchange/AnswerReader.ts"
import { exchange } from "../../exchange/Exchange.ts"
import { PassingAnswer } from "../../exchange/PassingAnswer.ts"
import * as RelayedBody from "../../exchange/RelayedBody.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import * as JsonText from "../../json/JsonText.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import { type Call, type Perform, performByName } from "../../call/Protocol.ts"
import * as CohereEmbed from "./CohereEmbed.ts"
import { optionsOf } from "./CohereOptions.ts"
import { usageIn } from "./RerankUsage.ts"

export const make = (tools: JsonExchange.Tools): Perform =>
  performByName(
    new Map([...Embeddings.performs(CohereEmbed.make(tools)), [rerank.name, relayed(tools, pathOf)]])
  )

/** Reranks at this path below `baseUrl`, and leaves everything else to others. */
export const beside = (others: Perform, tools: JsonExchange.Tools, path: string): Perform => {
  const ranking = relayed(tools, () => Effect.succeed(path))
  return (call, sink) => (call.operation.name === rerank.name ? ranking : others)(call, sink)
}

// Path

const defaultPath = "/v1/rerank"

const pathOf = (endpoint: Endpoint): Effect.Effect<string, JobError> =>
  Effect.map(optionsOf(endpoint), ({ rerankPath = defaultPath }) => rerankPath)

// Request

/** The client's body with the provider's name of the model. A string alone is one document, but not for them. */
const toBody = (call: Call): Uint8Array => {
  const { body, endpoint: { model } } = call
  const members = JsonText.members(body) ?? []
  const changes = new Map<string, unknown>()
  if (model !== call.model) changes.set("model", model)
  const documents = JsonText.valueOf(body, members, "documents")
  if (typeof documents === "string") changes.set("documents", [documents])
  return RelayedBody.edit(call, members, changes, undefined)
}

// Answer

const grammar: AnswerGrammar = {
  marks: [],
  modelPaths: [["model"]],
  // whatever has no results is no answer, and may say why
  read: ({ meta = null, results, usage = null }) =>
    Array.isArray(results) ? { usage: usageIn({ meta, usage }) } : { isError: true },
  // nothing of it is streamed
  isLast: () => true
}

class RankedAnswer extends PassingAnswer {
  override whole(body: Uint8Array): Read {
    const read = super.whole(body)
    return isFailure(read) ? read : read.map(withId)
  }
}

const withId = (body: Uint8Array): Uint8Array => {
  const members = JsonText.members(body) ?? []
  return members.some(({ name }) => name === "id")
    ? body
    : JsonText.setMembers(body, members, new Map([["id", randomUUID()]]))
}

const relayed = (
  tools: JsonExchange.Tools,
  pathOf: (endpoint: Endpoint) => Effect.Effect<string, JobError>
): Perform =>
(call, sink) =>
  Effect.flatMap(pathOf(call.endpoint), (path) =>
    exchange({
      ...tools,
      authorize: JsonExchange.bearer,
      call,
      sink,
      request: { path, body: toBody(call), contentType: call.contentType, streams: false },
      reader: (secrets) => new RankedAnswer({ call, grammar, showUsage: true, secrets })
    }))
