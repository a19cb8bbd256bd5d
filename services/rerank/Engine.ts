/** Offers the built-in rerank engine to the `local` protocol. */
import { Effect, Layer, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { rerank, RerankRequest } from "../../shared/contract/operations/Rerank.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { decoder } from "../../shared/provider/call/RequestBody.ts"
import { loadTokenizer, type Tokenizer } from "../../shared/text/Tokens.ts"
import type { Perform } from "../../shared/provider/call/Protocol.ts"
import { writeAll } from "../../shared/provider/transport/Sink.ts"
import { relevance } from "./Relevance.ts"

/** A query over up to this many documents is one search unit. */
const documentsPerSearchUnit = 100

/** Results that are printed in one go, at most, and the characters of documents after which it is enough. */
const resultsAtOnce = 256
const charactersAtOnce = 64 * 1_024

const utf8 = new TextEncoder()
const decode = decoder(RerankRequest)

interface Result {
  readonly index: number
  readonly relevance_score: number
  readonly document?: { readonly text: string }
}

const make = (tokenizer: Tokenizer): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const request = yield* decode(call)
    const documents = typeof request.documents === "string" ? [request.documents] : request.documents
    const texts = documents.map((document) => typeof document === "string" ? document : document.text)
    const scores = yield* relevance(request.query, texts)
    const results = texts
      .map((text, index): Result => ({
        index,
        relevance_score: scores[index] ?? 0,
        ...request.return_documents === true ? { document: { text } } : {}
      }))
      .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
      .slice(0, request.top_n ?? texts.length)
    const inputTokens = yield* tokenizer.countAll([request.query, ...texts])

    const searchUnits = Math.ceil(texts.length / documentsPerSearchUnit)
    const meta = { api_version: { version: "1" }, billed_units: { search_units: searchUnits } }
    const body = Stream.make(`{"id":${JSON.stringify(randomUUID())},"results":[`).pipe(
      Stream.concat(
        Stream.mapEffect(Stream.fromIterable(printed(results)), (json) => Effect.as(Effect.yieldNow, json))
      ),
      Stream.concat(Stream.make(`],"meta":${JSON.stringify(meta)}}`)),
      Stream.map((text) => utf8.encode(text))
    )
    sink.start({ status: 200, contentType: "application/json", headers: {} })
    yield* writeAll(sink, body)
    return { inputTokens, outputTokens: 0, searchUnits }
  })

/** The results as JSON, separated by commas, some at a time. */
function* printed(results: ReadonlyArray<Result>): Generator<string> {
  let json = ""
  for (const [at, result] of results.entries()) {
    json += `${at === 0 ? "" : ","}${JSON.stringify(result)}`
    if (json.length < charactersAtOnce && (at + 1) % resultsAtOnce !== 0) continue
    yield json
    json = ""
  }
  yield json
}

export const layer = Layer.effect(
  LocalEngines,
  Effect.map(loadTokenizer, (tokenizer) => LocalEngines.of({ performs: new Map([[rerank.name, make(tokenizer)]]) }))
)
