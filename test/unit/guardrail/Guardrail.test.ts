/** What a guardrail sees, allows, refuses and cannot check, with a real one and a real provider over HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { audioSpeech } from "../../../shared/contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../shared/contract/operations/audio/Transcriptions.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../shared/contract/operations/Completions.ts"
import { embeddings } from "../../../shared/contract/operations/embeddings/Embeddings.ts"
import { generateContent, streamGenerateContent } from "../../../shared/contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../shared/contract/operations/ImageGenerations.ts"
import { messages } from "../../../shared/contract/operations/Messages.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import { coverages } from "../../../shared/guardrail/Coverage.ts"
import { forbidden, type Mood, reason } from "../../fixture/guardrail/HookServer.ts"
import { guarded } from "./Guarded.ts"

const ask = (text: string) => [{ role: "user", content: text }]

/** A request in each chat dialect. */
const dialects: ReadonlyArray<
  readonly [name: string, operation: Operation, streaming: Operation, request: (text: string) => object]
> = [
  ["chat completions", chatCompletions, chatCompletions, (text) => ({ messages: ask(text) })],
  ["completions", completions, completions, (text) => ({ prompt: text })],
  ["messages", messages, messages, (text) => ({ max_tokens: 100, messages: ask(text) })],
  ["responses", responses, responses, (text) => ({ input: text })],
  [
    "generateContent",
    generateContent,
    streamGenerateContent,
    (text) => ({ contents: [{ role: "user", parts: [{ text }] }] })
  ]
]

/** Words that are two characters and a space each. */
const long = Array.from({ length: 400 }, (_, index) => (index % 90 + 10).toString()).join(" ")

describe("a guardrail", () => {
  for (const [name, whole, streaming, request] of dialects) {
    it.live(`checks a request of ${name} before the provider is called`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat")
        const { checked, error, head } = yield* perform(whole, request(`a ${forbidden}`))
        assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "request", explanation: reason })
        assert.deepStrictEqual(checked, { request: "refused" })
        assert.isUndefined(head)
        assert.lengthOf(provider.requests, 0)
        assert.deepInclude(hook.checks[0], { id: "job_1", tenant: "key_1", model: "guarded", operation: whole.name })
        assert.deepInclude(hook.headers[0], { authorization: "Bearer hook-secret", "x-team": "blue" })
      }))

    it.live(`checks an answer of ${name} as a whole`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat")
        provider.say(`one ${forbidden} more`)
        const { checked, cut, error, head } = yield* perform(whole, request("hello"))
        assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "answer", explanation: reason })
        assert.deepStrictEqual(checked, { request: "passed", answer: "refused" })
        assert.isUndefined(head, "nothing has left")
        assert.isDefined(cut, "the call was paid")
        assert.deepInclude(hook.windows[0], { window: 0, text: `one ${forbidden} more` })
      }))

    it.live(`passes an allowed answer of ${name} on`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat")
        provider.say("one apple more")
        const { checked, error, head, text } = yield* perform(whole, request("hello"))
        assert.isUndefined(error)
        assert.include(text, "one apple more")
        assert.strictEqual(head?.status, 200)
        assert.deepStrictEqual(checked, { request: "passed", answer: "passed" })
        assert.deepStrictEqual(hook.windows.map(({ text }) => text), ["one apple more"])
      }))

    it.live(`passes an allowed stream of ${name} on unchanged, window by window`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat", "window: { characters: 100, overlap: 10 }")
        provider.say(long)
        const { checked, error, text } = yield* perform(streaming, { ...request("hello"), stream: true })
        assert.isUndefined(error)
        assert.deepStrictEqual(checked, { request: "passed", answer: "passed" })
        assert.isAbove(hook.windows.length, 5)
        assert.deepStrictEqual(hook.windows.map(({ window }) => window), [...hook.windows.keys()])
        assert.isTrue(
          hook.windows.every(({ text }) => text.length < 120),
          "a window, its overlap, and the end of a piece"
        )
        // every character once, and the overlap with the window before
        const joined = hook.windows.map(({ text }, at) => at === 0 || text === "" ? text : text.slice(10)).join("")
        assert.strictEqual(joined, long)
        const plain = yield* guarded("chat")
        plain.provider.say(long)
        const free = yield* plain.perform(streaming, { ...request("hello"), stream: true }, "free")
        assert.strictEqual(shapeOf(text), shapeOf(free.text))
      }))

    it.live(`ends a stream of ${name} before the first byte of a refused window`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat", "window: { characters: 100, overlap: 10 }")
        provider.say(`${long} ${forbidden} ${long}`)
        const { checked, cut, error, head, text } = yield* perform(streaming, { ...request("hello"), stream: true })
        assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "answer" })
        assert.deepStrictEqual(checked, { request: "passed", answer: "refused" })
        assert.strictEqual(head?.status, 200)
        assert.isDefined(cut, "the call was paid")
        // the windows that were allowed, and no byte of the one that was not
        const allowed = hook.windows.slice(0, -1).map(({ text }, at) => at === 0 ? text : text.slice(10)).join("")
        assert.isAbove(allowed.length, 800)
        assert.strictEqual(textIn(text), allowed)
        assert.include(hook.windows.at(-1)?.text, forbidden)
      }))
  }

  it.live("finds a word that two windows share", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("chat", "window: { characters: 100, overlap: 10 }")
      // the provider's pieces are words: the window ends in front of the last letters
      provider.behave({
        kind: "raw",
        pieces: streamOf(["x".repeat(96), "kumq", "uat", "y"]),
        headers: { "content-type": "text/event-stream" }
      })
      const { error, text } = yield* perform(chatCompletions, { messages: ask("hello"), stream: true })
      assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "answer" })
      assert.strictEqual(hook.windows.length, 2)
      assert.notInclude(text, "uat")
    }))

  it.live("checks the arguments of tools, in pieces and whole", () =>
    Effect.gen(function*() {
      for (const stream of [false, true]) {
        for (const [, whole, streaming, request] of dialects.filter(([name]) => name !== "completions")) {
          const { hook, perform, provider } = yield* guarded("chat")
          provider.say({ toolCalls: [{ name: "buy", arguments: JSON.stringify({ fruit: forbidden }) }] })
          const operation = stream ? streaming : whole
          const { error, text } = yield* perform(operation, { ...request("hello"), stream })
          assert.deepInclude(error, { _tag: "GuardrailRefused" }, `${operation.name} ${JSON.stringify(hook.windows)}`)
          assert.strictEqual(text, "")
        }
      }
    }))

  it.live("sees in a stream of responses no text twice", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("chat")
      provider.say("one apple more")
      yield* perform(responses, { input: "hello", instructions: "be brief", stream: true })
      assert.deepStrictEqual(hook.windows.map(({ text }) => text), ["one apple more"])
    }))

  it.live("sees the request that its provider gets, even if it has a member twice", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("chat")
      const twice = JSON.stringify(ask("an apple"))
      const body = `{"model":"guarded","messages":${JSON.stringify(ask(forbidden))},"messages":${twice}}`
      const { error } = yield* perform(chatCompletions, Buffer.from(body))
      assert.isUndefined(error)
      assert.deepStrictEqual(hook.requests, [JSON.stringify({ model: "guarded", messages: ask("an apple") })])
      assert.notInclude(provider.requests[0]?.body.toString(), forbidden)
    }))

  it.live("checks the input of embeddings, whose answers have no text", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("embeddings")
      const { checked, error } = yield* perform(embeddings, { input: ["an apple"] })
      assert.isUndefined(error)
      assert.deepStrictEqual(checked, { request: "passed" })
      assert.lengthOf(hook.checks, 1)
      const refused = yield* perform(embeddings, { input: [`a ${forbidden}`] })
      assert.deepInclude(refused.error, { _tag: "GuardrailRefused", direction: "request" })
      assert.lengthOf(provider.requests, 1)
    }))

  it.live("checks the prompts of pictures, and refuses files of forms", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("images", "checks: [request]")
      const { checked } = yield* perform(imageGenerations, { prompt: "an apple" })
      assert.deepStrictEqual(checked, { request: "passed" })
      const refused = yield* perform(imageGenerations, { prompt: `a ${forbidden}` })
      assert.deepInclude(refused.error, { _tag: "GuardrailRefused", direction: "request" })
      const form = new FormData()
      form.set("model", "guarded")
      form.set("prompt", "an apple")
      form.set("image", new Blob(["a picture"]), "a.png")
      const unread = yield* perform(imageEdits, form)
      assert.deepInclude(unread.error, { _tag: "InvalidRequest", code: "not_checkable" })
      assert.deepStrictEqual(unread.checked, { request: "unchecked" })
      assert.lengthOf(provider.requests, 1)
      assert.lengthOf(hook.checks, 2)
    }))

  it.live("passes media unchecked if its policy is open, and says so", () =>
    Effect.gen(function*() {
      const { hook, perform } = yield* guarded("speech", "onUnreachable: open")
      const { checked, error } = yield* perform(audioSpeech, { input: "an apple", voice: "alloy" })
      assert.isUndefined(error)
      assert.deepStrictEqual(checked, { request: "passed", answer: "unchecked" })
      assert.lengthOf(hook.checks, 1)
      const refused = yield* perform(audioSpeech, { input: `a ${forbidden}`, voice: "alloy" })
      assert.deepInclude(refused.error, { _tag: "GuardrailRefused", direction: "request" })
    }))

  it.live("refuses speech before it is paid, if its answer was to be checked", () =>
    Effect.gen(function*() {
      const { perform, provider } = yield* guarded("speech")
      const { checked, error } = yield* perform(audioSpeech, { input: "an apple", voice: "alloy" })
      assert.deepInclude(error, { _tag: "InvalidRequest", code: "not_checkable" })
      assert.deepStrictEqual(checked, { answer: "unchecked" })
      assert.lengthOf(provider.requests, 0)
    }))

  it.live("checks a transcription's text, though not its sound", () =>
    Effect.gen(function*() {
      const { perform, provider } = yield* guarded("speech", "checks: [answer]")
      provider.behave({
        kind: "raw",
        pieces: [JSON.stringify({ text: `a ${forbidden}` })],
        headers: { "content-type": "application/json" }
      })
      const form = new FormData()
      form.set("model", "guarded")
      form.set("file", new Blob(["sound"]), "a.wav")
      const { checked, error } = yield* perform(transcriptions, form)
      assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "answer" })
      assert.deepStrictEqual(checked, { answer: "refused" })
    }))

  it.live("refuses a picture within an answer of chat", () =>
    Effect.gen(function*() {
      const { perform, provider } = yield* guarded("chat")
      const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(200)}` } }
      const message = { role: "assistant", content: "look", images: [image] }
      provider.behave({
        kind: "raw",
        pieces: [JSON.stringify({ id: "1", object: "chat.completion", choices: [{ index: 0, message }] })],
        headers: { "content-type": "application/json" }
      })
      const { checked, error, head } = yield* perform(chatCompletions, { messages: ask("hello") })
      assert.deepInclude(error, { _tag: "InvalidRequest", code: "not_checkable" })
      assert.deepStrictEqual(checked, { request: "passed", answer: "unchecked" })
      assert.isUndefined(head)
    }))

  const moods: ReadonlyArray<Mood | "unreachable"> = ["silent", "failing", "garbled", "unreachable"]
  for (const mood of moods) {
    const url = mood === "unreachable" ? "http://127.0.0.1:9/check" : undefined

    it.live(`that is ${mood} refuses everything with the policy closed`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat", "timeoutMs: 200", url)
        if (mood !== "unreachable") hook.mood = mood
        const { checked, error } = yield* perform(chatCompletions, { messages: ask("hello") })
        assert.deepInclude(error, { _tag: "GuardrailUnavailable", direction: "request" })
        assert.deepStrictEqual(checked, { request: "unchecked" })
        assert.lengthOf(provider.requests, 0)
      }))

    it.live(`that is ${mood} passes everything unchecked with the policy open`, () =>
      Effect.gen(function*() {
        const { hook, perform, provider } = yield* guarded("chat", "timeoutMs: 200, onUnreachable: open", url)
        if (mood !== "unreachable") hook.mood = mood
        provider.say("one apple more")
        const { checked, error, text } = yield* perform(chatCompletions, { messages: ask("hello"), stream: true })
        assert.isUndefined(error)
        assert.strictEqual(textIn(text), "one apple more")
        assert.deepStrictEqual(checked, { request: "unchecked", answer: "unchecked" })
      }))
  }

  it.live("that fails in the middle of a stream ends it there with the policy closed", () =>
    Effect.gen(function*() {
      const { hook, perform, provider } = yield* guarded("chat", "window: { characters: 100, overlap: 0 }")
      hook.onCheck = (check) => {
        if (check.direction === "answer" && check.window === 2) hook.mood = "failing"
      }
      provider.say(long)
      const { checked, error, text } = yield* perform(chatCompletions, { messages: ask("hello"), stream: true })
      assert.deepInclude(error, { _tag: "GuardrailUnavailable", direction: "answer" })
      assert.deepStrictEqual(checked, { request: "passed", answer: "unchecked" })
      assert.strictEqual(textIn(text), hook.windows.slice(0, 2).map(({ text }) => text).join(""))
    }))

  it.live("has an answer checked that the provider breaks off, and does not call it passed", () =>
    Effect.gen(function*() {
      const { perform, provider } = yield* guarded("chat")
      provider.behave({ kind: "cut", after: 3 })
      const { checked, error } = yield* perform(chatCompletions, { messages: ask("hello there you"), stream: true })
      assert.deepInclude(error, { _tag: "ProviderFailed" })
      assert.deepStrictEqual(checked, { request: "passed" })
    }))

  it.live("is not asked for models without one", () =>
    Effect.gen(function*() {
      const { hook, perform } = yield* guarded("chat")
      const { checked, error } = yield* perform(chatCompletions, { messages: ask(forbidden) }, "free")
      assert.isUndefined(error)
      assert.deepStrictEqual(checked, {})
      assert.lengthOf(hook.checks, 0)
    }))

  it.live("stops the provider's call when it refuses", () =>
    Effect.gen(function*() {
      const { perform, provider } = yield* guarded("chat", "window: { characters: 5, overlap: 0 }")
      provider.say(`${forbidden} ${long}`)
      provider.behave({ kind: "hold", after: 3 })
      const fiber = yield* Effect.forkChild(perform(chatCompletions, { messages: ask("hello"), stream: true }))
      const received = yield* Effect.promise(() => provider.nextRequest())
      yield* Effect.promise(() => received.closed)
      const { error } = yield* Fiber.join(fiber)
      assert.deepInclude(error, { _tag: "GuardrailRefused", direction: "answer" })
    }))

  it("covers every operation", () => {
    assert.deepStrictEqual(Object.keys(coverages).toSorted(), operations.map(({ name }) => name).toSorted())
  })
})

/** Chunks of a stream of chat completions. */
const streamOf = (pieces: ReadonlyArray<string>): ReadonlyArray<string> =>
  [
    ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }
  ].map((chunk) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: "m", ...chunk })}\n\n`)
    .concat("data: [DONE]\n\n")

/** The text of a stream in any dialect, without the events that repeat it. */
const textIn = (stream: string): string =>
  [...stream.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text).join("")

/** A stream without what differs from one answer to the next. */
const shapeOf = (stream: string): string =>
  stream.replaceAll(/"(?:id|item_id|responseId)":"[^"]*"|"created(?:_at)?":\d+|"completed_at":\d+|guarded|free/g, "")
