/** Offers the built-in rerank engine to the `local` protocol. */
import { Effect, Layer, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { rerank, RerankRequest, textOf, toReturned } from "../../shared/contract/operations/Rerank.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { decoder } from "../../shared/provider/call/RequestBody.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import type { Perform } from "../../shared/provider/call/Protocol.ts"
import { writeAll } from "../../shared/provider/transport/Sink.ts"
import { relevance } from "./Relevance.ts"

/** A query over up to this many documents is one search unit. */
const documentsPerSearchUnit = 100

const utf8 = new TextEncoder()
const decode = decoder(RerankRequest)

const perform: Perform = Effect.fnUntraced(function*(call, sink) {
  const { documents: given, query, rank_fields, return_documents, top_n } = yield* decode(call)
  const documents = typeof given === "string" ? [given] : given
  const texts = documents.map((document) => textOf(document, rank_fields))
  const scores = yield* relevance(query, texts)
  const ranking = [...texts.keys()].toSorted((a, b) => scores[b]! - scores[a]! || a - b).slice(0, top_n ?? undefined)
  const { countAll } = yield* loadTokenizer
  const inputTokens = yield* countAll([query, ...texts])
  const searchUnits = Math.ceil(texts.length / documentsPerSearchUnit)
  const results = ranking.map((index) => {
    const document = return_documents === true ? toReturned(documents[index]) : undefined
    return { index, relevance_score: scores[index], document }
  })
  sink.start({ status: 200, contentType: "application/json", headers: {} })
  const answer = Stream.fromIterable(print(results, searchUnits))
  yield* writeAll(sink, Stream.mapEffect(answer, (json) => Effect.as(Effect.yieldNow, utf8.encode(json))))
  return { inputTokens, outputTokens: 0, searchUnits }
})

/** The answer as JSON, in pieces of about 64 KiB. */
function* print(results: ReadonlyArray<object>, searchUnits: number): Generator<string> {
  const meta = { api_version: { version: "1" }, billed_units: { search_units: searchUnits } }
  let json = `{"id":"${randomUUID()}","results":[`
  for (const [at, result] of results.entries()) {
    json += `${at === 0 ? "" : ","}${JSON.stringify(result)}`
    if (json.length < 65_536) continue
    yield json
    json = ""
  }
  yield `${json}],"meta":${JSON.stringify(meta)}}`
}

export const layer = Layer.succeed(LocalEngines, { performs: new Map([[rerank.name, perform]]) })
