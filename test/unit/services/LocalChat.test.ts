/** The built-in chat engine: its answers, limits, pace and configured faults. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { LocalChat, LocalChatOptions } from "../../../services/chat/LocalChat.ts"
import { InvalidRequest, ProviderFailed } from "../../../shared/contract/JobError.ts"
import type { Conversation } from "../../../shared/provider/dialects/conversation/Conversation.ts"
import type { ModelEvent } from "../../../shared/provider/dialects/conversation/ModelEvent.ts"
import {
  assistant,
  conversation,
  finishes,
  textOf,
  toolResult,
  turn,
  usageOf
} from "../../fixture/calls/Conversations.ts"

const city = "Paris is the capital and largest city of France. It had about 2.1 million inhabitants in 2023. " +
  "Dr. Smith lives in London. The Seine flows through Paris. Bread prices rose by four percent last year."
const aboutCity = (question: string, more: Partial<Conversation> = {}) =>
  conversation([turn("system", city), turn("user", question)], more)

const stream = (request: Conversation, options: LocalChatOptions = {}) =>
  Stream.unwrap(Effect.map(LocalChat, (engine) => engine.answer(request, options)))
const ask = (request: Conversation, options: LocalChatOptions = {}) =>
  Stream.runCollect(stream(request, options)).pipe(Effect.provide(LocalChat.layer))
const say = (request: Conversation, options: LocalChatOptions = {}) =>
  Effect.map(ask(request, options), (events) => textOf(events))

// The first answer loads the tokenizer's table, which would distort measured times.
beforeAll(() => Effect.runPromise(ask(conversation([turn("user", "Hello")]))))

describe("the built-in chat engine", () => {
  it.effect("answers with the user's last message, and says that it is not a model", () =>
    Effect.gen(function*() {
      const turns = [turn("user", "My name is Anna."), assistant("Nice."), turn("user", "What is my name?")]
      const text = yield* say(conversation(turns))
      assert.include(text, "not a model")
      assert.include(text, "What is my name?")
      assert.include(yield* say(conversation([])), "not a model")
    }))

  it.effect("answers with exact words if the user asks for them", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* say(conversation([turn("user", "Say this is a test")])), "this is a test")
      assert.strictEqual(yield* say(conversation([turn("user", "Reply with exactly: pong")])), "pong")
    }))

  it.effect("answers with only the start of a long message", () =>
    Effect.gen(function*() {
      const text = yield* say(conversation([turn("user", `${city} `.repeat(1_000))]))
      assert.isBelow(text.length, 2_200)
      assert.isTrue(text.endsWith("…"))
    }))

  it.effect("answers with the results of its tool calls", () =>
    Effect.gen(function*() {
      const text = yield* say(conversation([
        turn("user", "How warm is it in Paris?"),
        assistant("", { id: "c1", name: "get_weather", arguments: "{}" }, { id: "c2", name: "log", arguments: "{}" }),
        toolResult("c1", `{"city":"Paris","celsius":21}`),
        toolResult("c2", "")
      ]))
      assert.include(text, `{"city":"Paris","celsius":21}`)
    }))

  it.effect("gives the same answer each time", () =>
    Effect.gen(function*() {
      const request = aboutCity("What is the capital of France?", { choices: 3, seed: 5 })
      assert.deepStrictEqual(yield* ask(request), yield* ask(request))
    }))
})

describe("choices of an answer", () => {
  it.effect("differ, each with one finish, followed by one usage", () =>
    Effect.gen(function*() {
      const choices = 20
      for (const question of ["What is the capital of France?", "Hello", "Say pong"]) {
        const events = yield* ask(aboutCity(question, { choices }))
        const texts = Array.from({ length: choices }, (_, choice) => textOf(events, choice))
        assert.strictEqual(new Set(texts).size, choices)
        assert.deepStrictEqual(finishes(events).map(({ choice }) => choice).toSorted((a, b) => a - b), [
          ...texts.keys()
        ])
        assert.deepStrictEqual(events.flatMap(({ type }, i) => type === "usage" ? [i] : []), [events.length - 1])
      }
    }))

  it.effect("are limited to 128", () =>
    Effect.gen(function*() {
      const hello = conversation([turn("user", "Hello")])
      assert.strictEqual(finishes(yield* ask({ ...hello, choices: 128 })).length, 128)
      assert.instanceOf(yield* Effect.flip(ask({ ...hello, choices: 129 })), InvalidRequest)
    }))

  it.effect("are streamed in turn, word by word", () =>
    Effect.gen(function*() {
      const events = yield* ask(aboutCity("What is the capital of France?", { choices: 2 }))
      assert.deepStrictEqual(events.slice(0, 4).flatMap((event) => event.type === "text" ? [event.choice] : []), [
        0,
        1,
        0,
        1
      ])
    }))
})

describe("an answer's limits", () => {
  it.effect("end it before the earliest stop sequence, at the shorter of two at the same position, and name it", () =>
    Effect.gen(function*() {
      const request = aboutCity("What is the capital of France?")
      const plain = yield* say(request)
      // it spans words, so that no delta contains it
      const [at, stop] = [9, plain.slice(9, 20)]
      const events = yield* ask({ ...request, stop: ["no such", plain.slice(12, 16), `${stop}${plain[20]}`, stop, ""] })
      assert.strictEqual(textOf(events), plain.slice(0, at))
      assert.deepStrictEqual(finishes(events), [{ type: "finish", choice: 0, reason: "stop", stopSequence: stop }])
    }))

  it.effect.prop(
    "leave a prefix of the unlimited answer, without any stop sequence",
    [Schema.Int, Schema.Int, Schema.String],
    ([at, length, other]) =>
      Effect.gen(function*() {
        const request = aboutCity("Summarise it.")
        const plain = yield* say(request)
        const start = Math.abs(at) % plain.length
        const stop = [plain.slice(start, start + 1 + Math.abs(length) % 12), other]
        const text = yield* say({ ...request, stop })
        assert.isTrue(plain.startsWith(text) && text.length < plain.length)
        assert.isFalse(stop.some((sequence) => sequence !== "" && text.includes(sequence)))
      })
  )

  it.effect("end it at the exact number of tokens, with the finish reason", () =>
    Effect.gen(function*() {
      const request = aboutCity("What is the capital of France?")
      const whole = countTokens(yield* say(request))
      for (let maxTokens = 1; maxTokens <= whole + 1; maxTokens++) {
        const events = yield* ask({ ...request, maxTokens })
        assert.strictEqual(usageOf(events).outputTokens, Math.min(maxTokens, whole))
        assert.strictEqual(countTokens(textOf(events)), Math.min(maxTokens, whole))
        assert.strictEqual(finishes(events)[0]?.reason, maxTokens < whole ? "length" : "stop")
      }
    }))

  it.effect("split no character", () =>
    Effect.gen(function*() {
      const request = conversation([turn("user", "Say 👩‍👩‍👧 żółć 𝔘𝔫𝔦 日本語")])
      for (let maxTokens = 1; maxTokens < 30; maxTokens++) {
        const events = yield* ask({ ...request, maxTokens })
        assert.isTrue(textOf(events).isWellFormed() && !textOf(events).includes("\ufffd"))
        assert.isTrue(usageOf(events).outputTokens <= maxTokens)
      }
    }))

  it.effect("cut the arguments of a tool call too", () =>
    Effect.gen(function*() {
      const tools = [{
        name: "note",
        description: undefined,
        parameters: { properties: { text: { type: "string" } }, required: ["text"] }
      }]
      const events = yield* ask(
        conversation([turn("user", city)], { tools, toolChoice: { type: "required" }, maxTokens: 6 })
      )
      assert.strictEqual(finishes(events)[0]?.reason, "length")
      assert.strictEqual(usageOf(events).outputTokens, 6)
    }))
})

describe("the usage of an answer", () => {
  it.effect("counts the tokens of all turns, and of all choices", () =>
    Effect.gen(function*() {
      const question = "What is the capital of France?"
      const events = yield* ask(aboutCity(question, { choices: 3 }))
      const said = [0, 1, 2].reduce((sum, choice) => sum + countTokens(textOf(events, choice)), 0)
      const inputTokens = countTokens(city) + countTokens(question)
      assert.deepStrictEqual(usageOf(events), {
        inputTokens,
        inputTextTokens: inputTokens,
        outputTokens: said
      })
    }))

  it.effect("treats special tokens as text", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* say(conversation([turn("user", "Say <|endoftext|>")])), "<|endoftext|>")
    }))

  // The longest runs are counted in parts, which adds a few tokens.
  const inputs = [["words", `${city} `, 0.02], ["one endless word", "x7Qz", 0.1], [
    "Chinese",
    "国际汉字没有空格",
    0.1
  ]] as const
  for (const [name, unit, tolerance] of inputs) {
    it.live(`estimates a megabyte of ${name} without blocking the event loop`, () =>
      Effect.gen(function*() {
        const text = unit.repeat(Math.ceil(1_000_000 / unit.length))
        const sample = countTokens(unit.repeat(100)) / (unit.length * 100)
        let turns = 0
        let on = true
        const count = (): void => {
          turns++
          if (on) setImmediate(count)
        }
        count()
        const events = yield* ask(conversation([turn("user", `${text}\n\nWhat is the capital of France?`)]))
        on = false
        const { inputTokens } = usageOf(events)
        assert.approximately(inputTokens / (sample * text.length), 1, tolerance)
        // The work is sliced: others had dozens of turns.
        assert.isAbove(turns, 30)
        assert.isBelow(textOf(events).length, 3_000)
      }))
  }
})

describe("the configured pace and faults", () => {
  const paced: LocalChatOptions = { firstTokenMs: 250, tokensPerSecond: 10 }
  const request = conversation([turn("user", "Say one two three four")])

  /** Runs the other fibers until all of them wait for the clock. */
  const settle = Effect.yieldNow.pipe(Effect.repeat({ times: 100 }))

  const timed = (request: Conversation, options: LocalChatOptions) =>
    stream(request, options).pipe(
      Stream.mapEffect((event) => Effect.map(Clock.currentTimeMillis, (at) => ({ at, type: event.type }))),
      Stream.runCollect,
      Effect.provide(LocalChat.layer)
    )

  it.effect("delay the first token and then each further token", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(timed(request, paced))
      yield* settle
      yield* TestClock.adjust("10 seconds")
      const events = yield* Fiber.join(fiber)
      assert.deepStrictEqual(events.map(({ at }) => at), [250, 350, 450, 550, 650, 650])
      assert.deepStrictEqual(events.slice(-2).map(({ type }) => type), ["finish", "usage"])
    }))

  it.effect("apply to each choice, not to all together", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(timed({ ...request, choices: 2, maxTokens: 2 }, paced))
      yield* settle
      yield* TestClock.adjust("10 seconds")
      const events = yield* Fiber.join(fiber)
      assert.deepStrictEqual(events.map(({ at }) => at), [250, 250, 350, 350, 450, 450, 450])
    }))

  it.effect("include the answer's length in words", () =>
    Effect.gen(function*() {
      for (const words of [1, 7, 1_000]) {
        for (const request of [aboutCity("Summarise it."), conversation([turn("user", "Hello")])]) {
          assert.strictEqual((yield* say(request, { words })).split(" ").length, words)
        }
      }
    }))

  for (const [kind, reason] of [["error", "error"], ["cut", "cut"]] as const) {
    it.effect(`break off with ${kind} after the set number of tokens, without a finish`, () =>
      Effect.gen(function*() {
        const seen: Array<ModelEvent> = []
        const fault = { kind, afterTokens: 3, rate: 1 }
        const error = yield* stream(request, { fault }).pipe(
          Stream.runForEach((event) => Effect.sync(() => seen.push(event))),
          Effect.flip,
          Effect.provide(LocalChat.layer)
        )
        assert.strictEqual(textOf(seen), "one two three")
        assert.deepStrictEqual(finishes(seen), [])
        assert.instanceOf(error, ProviderFailed)
        assert.strictEqual((error as ProviderFailed).reason, reason)
      }))
  }

  it.effect("break off a shorter answer before its finish", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(ask(request, { fault: { kind: "cut", afterTokens: 100, rate: 1 } }))
      assert.isTrue(Exit.isFailure(exit))
    }))

  it.effect("include silence, which ends at once when interrupted", () =>
    Effect.gen(function*() {
      const third = yield* Deferred.make<void>()
      let seen = 0
      const fiber = yield* stream(request, { fault: { kind: "stall", afterTokens: 3, rate: 1 } }).pipe(
        Stream.runForEach(() => ++seen === 3 ? Deferred.succeed(third, undefined) : Effect.void),
        Effect.provide(LocalChat.layer),
        Effect.forkChild
      )
      yield* Deferred.await(third)
      yield* TestClock.adjust("1 day")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(seen, 3)
    }))

  it.effect("fail the set share of requests, the same requests in each run", () =>
    Effect.gen(function*() {
      const fault = { kind: "error", afterTokens: 0, rate: 0.3 } as const
      const run = Effect.forEach(Array.from({ length: 300 }), () =>
        Effect.map(Effect.exit(Stream.runDrain(stream(request, { fault }))), Exit.isFailure)).pipe(
          Effect.provide(LocalChat.layer)
        )
      const first = yield* run
      assert.deepStrictEqual(yield* run, first)
      assert.approximately(
        first.filter((failed) =>
          failed
        ).length / first.length,
        0.3,
        0.1
      )
      const seeded = yield* Effect.forEach([0, 1, 2], () => Effect.exit(ask({ ...request, seed: 4 }, { fault })))
      assert.strictEqual(new Set(seeded.map(Exit.isFailure)).size, 1)
    }))

  it.effect("stop a paced answer when interrupted", () =>
    Effect.gen(function*() {
      const second = yield* Deferred.make<void>()
      let seen = 0
      const fiber = yield* stream(request, { tokensPerSecond: 10 }).pipe(
        Stream.runForEach(() => ++seen === 2 ? Deferred.succeed(second, undefined) : Effect.void),
        Effect.provide(LocalChat.layer),
        Effect.forkChild
      )
      yield* settle
      yield* TestClock.adjust("100 millis")
      yield* Deferred.await(second)
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(seen, 2)
    }))

  it("are read from the catalogue, and rejected if invalid", () => {
    const decode = Schema.decodeUnknownExit(LocalChatOptions)
    assert.deepStrictEqual(
      decode({ fault: { kind: "cut" } }),
      Exit.succeed({ fault: { kind: "cut", afterTokens: 0, rate: 1 } })
    )
    for (
      const options of [{ firstTokenMs: -1 }, { tokensPerSecond: Infinity }, { words: 0 }, {
        fault: { kind: "cut", rate: 2 }
      }]
    ) {
      assert.isTrue(Exit.isFailure(decode(options)))
    }
  })

  it.effect("do not affect a required call of an unknown tool, which is rejected", () =>
    Effect.gen(function*() {
      for (const toolChoice of [{ type: "required" }, { type: "tool", name: "nowhere" }] as const) {
        const error = yield* Effect.flip(ask({ ...request, toolChoice }))
        assert.instanceOf(error, InvalidRequest)
        assert.strictEqual((error as InvalidRequest).param, "tool_choice")
      }
    }))
})
