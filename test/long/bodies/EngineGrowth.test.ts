/** Time grows about linearly with input in the built-in engines: see `RequestGrowth.test.ts`. */
import { describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as ChatEngine from "../../../services/chat/LocalChat.ts"
import { summarise } from "../../../services/chat/Summary.ts"
import * as Embedder from "../../../services/embeddings/Engine.ts"
import { readInstruction } from "../../../services/images/Operations.ts"
import * as Reranker from "../../../services/rerank/Engine.ts"
import { operationNamed } from "../../../shared/contract/operations/operations.ts"
import * as ChatOverEngine from "../../../shared/provider/dialects/conversation/ChatOverEngine.ts"
import { LocalEngines } from "../../../shared/provider/protocols/local/Local.ts"
import { callLocally } from "../../fixture/calls/LocalCall.ts"
import { clientDialects } from "../../fixture/ClientDialects.ts"
import { growsLinearly } from "../../fixture/Growth.ts"
import { nameOf, shapesForWorkers } from "../../fixture/Shapes.ts"

describe("a built-in engine answers", () => {
  const chatEngine = Layer.effect(
    LocalEngines,
    Effect.map(ChatEngine.LocalChat, (engine) => {
      const answer = (request: { readonly conversation: never }) => engine.answer(request.conversation, {})
      const options = { fingerprint: undefined, isLenient: true }
      return LocalEngines.of({
        performs: new Map(
          Object.values(clientDialects).map((client) => ChatOverEngine.make(answer as never, client, options))
        )
      })
    })
  ).pipe(Layer.provide(ChatEngine.LocalChat.layer))
  const engines: Readonly<Record<string, Layer.Layer<LocalEngines>>> = {
    ...Object.fromEntries(Object.keys(clientDialects).map((name) => [name, chatEngine])),
    "embeddings": Embedder.layer,
    "rerank": Reranker.layer
  }
  for (const shape of shapesForWorkers) {
    const engine = engines[shape.sample.operation]
    if (engine === undefined) continue
    growsLinearly(nameOf(shape), (elements) => {
      const body = { model: shape.sample.model, ...shape.body(elements) }
      const operation = operationNamed(shape.sample.operation)!
      return () => Effect.runPromiseExit(callLocally(engine, operation, shape.sample.model, body))
    })
  }
  growsLinearly("a compaction with instructions of many words", (elements) => {
    const text = Array.from({ length: elements }, (_, i) => `Bees of hive${i} dance.`).join(" ")
    return () => Effect.runPromise(summarise([{ text, origin: "assistant" }], text))
  })
  growsLinearly("an instruction with many clauses", (elements) => {
    const text = "put it 1     up, ".repeat(elements)
    return () => readInstruction(text)
  })
})
