/** Bodies that servers may read differently: with two models, or with one in another case. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "../../../services/ingress/request/IncomingBody.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"

const messages = `"messages":[{"role":"user","content":"a, b","name":"x"}]`

const outcomeOf = (body: string) =>
  Effect.match(decode(chatCompletions, {}, Buffer.from(body)), {
    onFailure: ({ code }) => code,
    onSuccess: ({ model }) => model
  })

describe("a body", () => {
  it.effect("with each name once is accepted", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* outcomeOf(`{"model":"small",${messages}}`), "small")
    }))

  it.effect("that is missing is an error of its own", () =>
    Effect.gen(function*() {
      assert.deepInclude(yield* Effect.flip(decode(chatCompletions, {}, Buffer.alloc(0))), {
        message: "The request has no body. Send the request as JSON.",
        code: "invalid_json"
      })
    }))

  it.effect("with two models is refused, however they are spelt", () =>
    Effect.gen(function*() {
      for (const name of ["model", "mod\\u0065l"]) {
        const body = Buffer.from(`{"${name}":"big",${messages},"model":"small"}`)
        assert.deepInclude(yield* Effect.flip(decode(chatCompletions, {}, body)), {
          param: "model",
          message: "model: must appear only once",
          code: "invalid_json"
        })
      }
    }))

  it.effect("with the model in another case is refused, beside the model or without it", () =>
    Effect.gen(function*() {
      for (const rest of [messages, `${messages},"model":"small"`]) {
        const error = yield* Effect.flip(decode(chatCompletions, {}, Buffer.from(`{"Model":"big",${rest}}`)))
        assert.deepInclude(error, { param: "Model", message: "Model: must be spelt `model`" })
      }
    }))

  it.effect("with two models is refused if it is large", () =>
    Effect.gen(function*() {
      const long = `"user":"${"x".repeat(3_000_000)}"`
      assert.strictEqual(yield* outcomeOf(`{"model":"big",${long},${messages},"model":"small"}`), "invalid_json")
    }))
})
