/** Offers the built-in rerank engine to the `local` protocol. */
import { Effect, Layer, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { rerank, RerankRequest, textOf, toReturned } from "../../shared/contract/operations/Rerank.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { decoder } from "../../shared/provider/call/RequestBody.ts"
import { loadTokenizer, type Tokenizer } from "../../shared/text/Tokens.ts"
import type { Perform } from "../../shared/provider/call/Protocol.ts"
import { writeAll } from "../../shared/provider/transport/Sink.ts"
import { relevance } from "./Relevance.ts"

/** A query over up to this many documents is one search unit. */
const documentsPerSearchUnit = 100

const utf8 = new TextEncoder()
const decode = decoder(RerankRequest)

const perform = (tokenizer: Tokenizer): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { documents: given, query, rank_fields, return_documents, top_n } = yield* decode(call)
    const documents = typeof given === "string" ? [given] : given
    const texts = documents.map((document) => textOf(document, rank_fields))
    const scores = yield* relevance(query, texts)
    const ranking = [...texts.keys()].toSorted((a, b) => scores[b]! - scores[a]! || a - b).slice(
      0,
      top_n ?? texts.length
    )
    const inputTokens = yield* tokenizer.countAll([query, ...texts])
    const searchUnits = Math.ceil(texts.length / documentsPerSearchUnit)
    const meta = { api_version: { version: "1" }, billed_units: { search_units: searchUnits } }
    sink.start({ status: 200, contentType: "application/json", headers: {} })
    const results = Stream.fromIterable(print(ranking, scores, return_documents === true ? documents : undefined))
    yield* writeAll(
      sink,
      Stream.make(`{"id":${JSON.stringify(randomUUID())},"results":[`).pipe(
        Stream.concat(Stream.mapEffect(results, (json) => Effect.as(Effect.yieldNow, json))),
        Stream.concat(Stream.make(`],"meta":${JSON.stringify(meta)}}`)),
        Stream.map((text) => utf8.encode(text))
      )
    )
    return { inputTokens, outputTokens: 0, searchUnits }
  })

/** The results as JSON, in pieces of about 64 KiB. */
function* print(
  ranking: ReadonlyArray<number>,
  scores: ReadonlyArray<number>,
  documents: ReadonlyArray<string | object> | undefined
): Generator<string> {
  let json = ""
  for (const [at, index] of ranking.entries()) {
    const document = toReturned(documents?.[index])
    json += `${at === 0 ? "" : ","}${JSON.stringify({ index, relevance_score: scores[index], document })}`
    if (json.length < 65_536) continue
    yield json
    json = ""
  }
  yield json
}

export const layer = Layer.effect(
  LocalEngines,
  Effect.map(loadTokenizer, (tokenizer) => LocalEngines.of({ performs: new Map([[rerank.name, perform(tokenizer)]]) }))
)
