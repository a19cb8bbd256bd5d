/** Reranks documents with AI SDK packages. */
import { Effect, Predicate } from "effect"
import { randomUUID } from "node:crypto"
import { ProviderFailed } from "../../../contract/JobError.ts"
import { RerankRequest, textOf, toReturned } from "../../../contract/operations/Rerank.ts"
import { usageIn } from "../cohere/RerankUsage.ts"
import * as EstimatedUsage from "../../call/EstimatedUsage.ts"
import { reader } from "../../call/RequestBody.ts"
import type { Perform } from "../../call/Protocol.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

const read = reader(RerankRequest)
const known = new Set(Object.keys(RerankRequest.fields))
const utf8 = new TextEncoder()

export const make = (open: Opener): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { endpoint } = call
    const { json, request: { documents: given, query, rank_fields, return_documents, top_n } } = yield* read(call)
    const opened = yield* open(endpoint)
    const model = yield* modelOf("reranking", opened, endpoint, call)
    const documents = typeof given === "string" ? [given] : given
    const values = documents.map((document) => textOf(document, rank_fields))
    const { ranking, response, warnings } = yield* attempt({ endpoint, secrets: opened.secrets }, (options) =>
      model.doRerank({
        ...options,
        documents: { type: "text", values },
        query,
        ...(typeof top_n === "number" ? { topN: top_n } : {}),
        providerOptions: providerOptions(opened, model, unknownFields(json, known))
      }))
    const isOutside = ({ index }: { readonly index: number }) =>
      values[index] === undefined
    if (ranking.some(isOutside)) {
      return yield* ProviderFailed.malformed(endpoint.name)
    }
    // not every provider sorts by relevance
    const ranked = ranking.toSorted((one, other) =>
      other.relevanceScore - one.relevanceScore
    )
    const usage = usageIn(response?.body) ??
      EstimatedUsage.ofSizes(EstimatedUsage.textBytes({ query, documents: values }), 0)
    const answer = {
      id: response?.id ?? randomUUID(),
      results: ranked.map(({ index, relevanceScore }) => ({
        index,
        relevance_score: relevanceScore,
        ...(return_documents === true ? { document: toReturned(documents[index]) } : {})
      })),
      meta: Predicate.hasProperty(response?.body, "meta") && Predicate.isObject(response.body.meta)
        ? response.body.meta
        : { api_version: { version: "1" } }
    }
    const headers = TranslationWarnings.toHeaders(lostFeatures(warnings))
    sink.start({ status: 200, contentType: "application/json", headers })
    sink.write(utf8.encode(JSON.stringify(answer)))
    return usage
  })
