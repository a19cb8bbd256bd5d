/** Compaction: summaries sealed by an earlier version, and summaries of conversations. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { isSealedText } from "../../../shared/records/Seal.ts"
import { compaction } from "../../../shared/contract/operations/Compaction.ts"
import { Unavailable } from "../../../shared/contract/JobError.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import type { Perform } from "../../../shared/provider/call/Protocol.ts"
import * as CompactByModel from "../../../services/chat/CompactByModel.ts"
import { Compactions } from "../../../services/chat/state/Compactions.ts"
import * as FormerSeal from "../../../services/chat/state/FormerSeal.ts"
import { type Source, summarise } from "../../../services/chat/Summary.ts"
import { call } from "../../fixture/calls/ProtocolCall.ts"

describe("a summary sealed by version 0.1", () => {
  const key = randomBytes(32)
  const seal = FormerSeal.make([key])

  it("is decrypted by the same key for the same tenant", () => {
    for (const text of ["", "a summary", "Grüße, 東京 🗼"]) {
      const sealed = seal.seal("tenant", text)
      assert.isTrue(isSealedText(sealed))
      assert.deepStrictEqual(FormerSeal.make([randomBytes(32), key]).open("tenant", sealed), Option.some(text))
      assert.deepStrictEqual(seal.open("tenant2", sealed), Option.none())
      assert.deepStrictEqual(FormerSeal.make([randomBytes(32)]).open("tenant", sealed), Option.none())
    }
    // as that version wrote it
    const old = FormerSeal.make([Buffer.from("0123456789abcdef0123456789abcdef")])
    assert.deepStrictEqual(
      old.open("key_1", "gwc1:3eb1bd43:P48MJUVKXxS6DHICkhXAnb7S5CExIrL3osaFFSA93hQJLtoZTIUazmWGqk_M"),
      Option.some("A summary of 0.1.")
    )
  })

  it("is not decrypted if one character is changed, added or removed", () => {
    const sealed = seal.seal("tenant", "a summary")
    for (let at = 0; at < sealed.length; at++) {
      const [head, tail] = [sealed.slice(0, at), sealed.slice(at + 1)]
      for (
        const changed of [
          `${head}${tail}`,
          `${head}x${sealed.slice(at)}`,
          `${head}${sealed[at] === "A" ? "B" : "A"}${tail}`
        ]
      ) {
        assert.deepStrictEqual(seal.open("tenant", changed), Option.none(), changed)
      }
    }
  })
})

describe("a summary", () => {
  const said = (origin: Source["origin"], text: string): Source => ({ origin, text })
  const filler = (count: number) =>
    Array.from({ length: count }, (_, at) => `Report ${at} mentions ${at * 7} crates of fish.`)

  it.effect("keeps all statements of a short conversation in order, without questions", () =>
    Effect.gen(function*() {
      const summary = yield* summarise([
        said("user", "When was the tower built? I need it for school."),
        said("assistant", "The tower was built in 1871. It is forty metres high."),
        said("tool", "opening hours: nine to five")
      ], "")
      assert.deepStrictEqual(summary.split("\n").slice(1), [
        "- I need it for school.",
        "- The tower was built in 1871.",
        "- It is forty metres high.",
        "- opening hours: nine to five"
      ])
    }))

  it.effect("of a long conversation is much shorter, and consists of its sentences", () =>
    Effect.gen(function*() {
      const text = filler(400).join(" ")
      const lines = (yield* summarise([said("assistant", text)], "")).split("\n").slice(1)
      assert.isTrue(lines.length > 20 && lines.length <= 60)
      for (const line of lines) assert.include(text, line.slice(2))
    }))

  it.effect("includes subjects named in the instructions, anywhere in the conversation", () =>
    Effect.gen(function*() {
      for (const at of [0, 200, 399]) {
        const text = filler(400).toSpliced(at, 0, "The harbour master is called Hansen.").join(" ")
        assert.notInclude(yield* summarise([said("assistant", text)], ""), "Hansen")
        assert.include(yield* summarise([said("assistant", text)], "Remember who the harbour master is"), "Hansen")
      }
    }))

  it.effect("of nothing is a heading, which does not repeat when summarised again", () =>
    Effect.gen(function*() {
      const heading = yield* summarise([], "")
      assert.lengthOf(heading.split("\n"), 1)
      const first = yield* summarise([said("assistant", "The tower was built in 1871.")], "")
      assert.strictEqual(yield* summarise([said("instructions", first)], ""), first)
    }))
})

describe("a compaction by a model", () => {
  const usage = { inputTokens: 7, outputTokens: 3 }

  /** Asks for a compaction. The model answers with this summary. */
  const compact = (summary: string, keep: Compactions["Service"]["keep"], onCut: (usage: Usage) => void) => {
    const model: Perform = (_call, sink) =>
      Effect.sync(() => {
        sink.start({ status: 200, contentType: "application/json", headers: {} })
        const content = [{ type: "output_text", text: summary }]
        sink.write(Buffer.from(JSON.stringify({ output: [{ type: "message", role: "assistant", content }] })))
        return usage
      })
    const compactions = Compactions.of({
      seal: (_requester, text) => `sealed ${text}`,
      open: () => Option.none(),
      keep,
      find: () => Effect.succeedNone
    })
    return call(CompactByModel.around(compactions)(model), {
      operation: compaction,
      model: "alias",
      name: "provider",
      provider: { protocol: "anthropic" },
      onCut,
      body: { model: "alias", input: "Tell me about the lighthouse.", unknown: 1 }
    })
  }

  it.effect("names the fields that it ignores", () =>
    Effect.gen(function*() {
      const cut: Array<Usage> = []
      const answered = yield* compact("It was built in 1871.", () => Effect.void, (usage) => cut.push(usage))
      assert.strictEqual(answered.head?.headers["x-translation-warnings"], "unknown has no effect")
      assert.deepStrictEqual(answered.usage, usage)
      assert.isEmpty(cut)
    }))

  it.effect("is metered if it cannot be stored", () =>
    Effect.gen(function*() {
      const cut: Array<Usage> = []
      const unavailable = () => Effect.fail(Unavailable.briefly())
      const asked = compact("It was built in 1871.", unavailable, (usage) => cut.push(usage))
      assert.instanceOf(yield* Effect.flip(asked), Unavailable)
      assert.deepStrictEqual(cut, [usage])
    }))

  it.effect("is metered if its summary is empty", () =>
    Effect.gen(function*() {
      const cut: Array<Usage> = []
      const failure = yield* Effect.flip(compact("", () => Effect.void, (usage) => cut.push(usage)))
      assert.deepInclude(failure, { _tag: "ProviderFailed", reason: "malformed" })
      assert.deepStrictEqual(cut, [usage])
    }))
})
