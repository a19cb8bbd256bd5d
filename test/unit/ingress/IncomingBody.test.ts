/** Bodies that servers may read differently: with two models, or with one in another case. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decode } from "../../../services/ingress/request/IncomingBody.ts"
import { transcriptions } from "../../../shared/contract/operations/audio/Transcriptions.ts"
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

describe("a form", () => {
  /** What becomes of a form with one more part. `headers`: of that part. */
  const outcomeWith = (headers: string, contentType = `multipart/form-data; boundary=${boundary}`) => {
    const parts = [`name="model"\r\n\r\nsmall`, `name="file"; filename="a.wav"\r\n\r\nsound`, `${headers}\r\n\r\nx`]
    const body = parts.map((part) => `--${boundary}\r\ncontent-disposition: form-data; ${part}\r\n`).join("")
    return Effect.match(
      decode(transcriptions, { "content-type": contentType }, Buffer.from(`${body}--${boundary}--\r\n`)),
      {
        onFailure: ({ message }) => message,
        onSuccess: ({ model }) => model
      }
    )
  }
  const boundary = `----${"b".repeat(27)}`

  it.effect("may have parts with nested names and long headers", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* outcomeWith(`name="a${"[b]".repeat(33)}"`), "small")
      assert.strictEqual(yield* outcomeWith(`name="a"; filename="${"ü".repeat(8_000)}"`), "small")
    }))

  it.effect("with a name that nests deep is refused, because to decode it could take a minute", () =>
    Effect.gen(function*() {
      const message = "The request body has a part whose name is longer than 100 characters"
      assert.strictEqual(yield* outcomeWith(`name="a${"[b]".repeat(5_000)}"`), message)
    }))

  it.effect("with long headers is refused", () =>
    Effect.gen(function*() {
      const message = "The request body has a part whose headers are too long"
      for (
        const headers of [
          `name="a"; filename="${"%22".repeat(100_000)}"`,
          `${"a=b; ".repeat(60_000)}name="a"`,
          `name="a"\r\n${"x: y\r\n".repeat(50_000)}x: y`
        ]
      ) {
        assert.strictEqual(yield* outcomeWith(headers), message)
        // another parameter holds what looks like the boundary
        const disguised = `multipart/form-data; x="; boundary=${"z".repeat(27)};"; boundary=${boundary}`
        assert.strictEqual(yield* outcomeWith(headers, disguised), message)
      }
    }))

  it.effect("without a boundary is no form", () =>
    Effect.gen(function*() {
      for (
        const type of ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=other"]
      ) {
        assert.match(String(yield* outcomeWith(`name="a"`, type)), /^The request body is not a valid form/)
      }
    }))
})
