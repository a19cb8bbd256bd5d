/** Chat completions of requests in the responses format hold no more of a provider's answer than they may. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as ItemsInChat from "../../../services/chat/ItemsInChat.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import type { Call, Perform } from "../../../shared/provider/call/Protocol.ts"
import type { Head, Sink } from "../../../shared/provider/transport/Sink.ts"

const call: Call = {
  operation: chatCompletions,
  model: "m",
  answersAs: "m",
  workload: "chat",
  tenant: "t",
  contentType: "application/json",
  body: Buffer.from(JSON.stringify({ model: "m", input: "Hello" })),
  endpoint: { name: "p", provider: { protocol: "openai", baseUrl: "https://provider.example" }, model: "m" }
}

describe("an answer as JSON", () => {
  it.effect("ends the call if it is too large to be held, and another provider can be tried", () =>
    Effect.gen(function*() {
      const heads: Array<Head> = []
      const sink: Sink = {
        hasStarted: false,
        start: (head) => heads.push(head),
        write: () => true,
        onDrain: (resume) => resume()
      }
      const piece = Buffer.alloc(1024 * 1024, " ")
      let written = 0
      let wasInterrupted = false
      const perform: Perform = (_, answer) => {
        answer.start({ status: 200, contentType: "application/json", headers: {} })
        const send = Effect.suspend(() => {
          written++
          answer.write(piece)
          return Effect.yieldNow
        })
        return send.pipe(
          Effect.repeat({ times: 199 }),
          Effect.onInterrupt(() => Effect.sync(() => wasInterrupted = true)),
          Effect.as(undefined)
        )
      }
      const result = yield* Effect.result(ItemsInChat.around(perform)(call, sink))
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, {
        _tag: "ProviderFailed",
        provider: "p",
        reason: "malformed"
      })
      assert.isTrue(wasInterrupted)
      assert.isAtMost(written, 80)
      assert.isEmpty(heads)
    }))
})
