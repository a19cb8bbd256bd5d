/** Answers of tasks in pages, and the numbers of their events. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { NumberedEvents } from "../../../shared/tasks/answers/NumberedEvents.ts"
import type { About } from "../../../shared/tasks/answers/Page.ts"
import { maxPageBytes } from "../../../shared/tasks/answers/TaskPages.ts"
import { TaskReply } from "../../../shared/tasks/answers/TaskReply.ts"

const claim = { refusal: () => undefined, isCommitted: () => false }

interface Written extends About {
  readonly text: string
}

/** The pages of an answer that these steps write before the first page is full or due. */
const pagesOf = (contentType: string, act: (reply: TaskReply) => void) =>
  Effect.gen(function*() {
    const pages: Array<Written> = []
    const reply = new TaskReply({
      claim,
      now: () => 0,
      append: (_, about, bytes) => {
        pages.push({ ...about, text: Buffer.from(bytes).toString() })
        return Effect.succeed(true)
      }
    })
    reply.start({ status: 200, contentType, headers: {} })
    act(reply)
    yield* reply.writePages
    return pages
  })

const write = (reply: TaskReply, ...texts: ReadonlyArray<string>) => {
  for (const text of texts) reply.write(Buffer.from(text))
}

const eventStream = "text/event-stream; charset=utf-8"

describe("an answer in pages", () => {
  it.effect("has only whole events of a stream, with the number of the first one of each page", () =>
    Effect.gen(function*() {
      const event = `data: ${"a".repeat(300_000)}\n\n`
      const pages = yield* pagesOf(eventStream, (reply) => {
        write(reply, event, event, "data: last", "\n\n", "data: never ends")
        reply.fail({ _tag: "WorkerLost" } as never)
      })
      assert.deepStrictEqual(pages.map(({ event }) => event), [0, 1])
      assert.deepStrictEqual(pages.map(({ text }) => text), [event, `${event}data: last\n\n`])
      assert.deepInclude(pages[0]?.head, { contentType: eventStream })
      assert.isUndefined(pages[1]?.head)
    }))

  it.effect("splits an event that no page could hold", () =>
    Effect.gen(function*() {
      const large = `data: ${"a".repeat(maxPageBytes)}\n\n`
      const pages = yield* pagesOf(eventStream, (reply) => {
        write(reply, "data: first\n\n", large, "data: last\n\n")
        reply.end(undefined)
      })
      assert.deepStrictEqual(pages.map(({ event }) => event), [0, 1, undefined])
      assert.strictEqual(pages.map(({ text }) => text).join(""), `data: first\n\n${large}data: last\n\n`)
    }))

  it.effect("keeps the end of a stream without a blank line", () =>
    Effect.gen(function*() {
      const pages = yield* pagesOf(eventStream, (reply) => {
        write(reply, "data: first\n\ndata: second")
        reply.end(undefined)
      })
      assert.strictEqual(pages.map(({ text }) => text).join(""), "data: first\n\ndata: second")
    }))

  it.effect("has any other bytes as they come", () =>
    Effect.gen(function*() {
      const [page, ...more] = yield* pagesOf("application/json", (reply) => {
        write(reply, "{\"a\"", ":1}")
        reply.end(undefined)
      })
      assert.deepInclude(page, { text: "{\"a\":1}" })
      assert.isEmpty(more)
    }))

  it.effect("is not written after it was given up", () =>
    Effect.gen(function*() {
      const pages = yield* pagesOf(eventStream, (reply) => {
        write(reply, "data: first\n\n")
        reply.abandon()
      })
      assert.isEmpty(pages)
    }))
})

describe("the number of an event", () => {
  const numbersOf = (...texts: ReadonlyArray<string>) => {
    const events = new NumberedEvents()
    return texts.flatMap((text) => events.push(Buffer.from(text)).map(({ number }) => number))
  }

  it("is its sequence_number, or one more than that of the event before", () => {
    assert.deepStrictEqual(numbersOf("data: a\n\ndata: b\n\n"), [0, 1])
    assert.deepStrictEqual(numbersOf("data: {\"sequence_number\":1}\n\n", "data: [DONE]\n\n"), [1, 2])
    assert.deepStrictEqual(
      numbersOf("data: {\"a\":{\"sequence_number\":7}}\n\n", "data: {\"sequence_number\":-1}\n\n"),
      [0, 1]
    )
  })

  it("is none for a comment", () => {
    assert.deepStrictEqual(numbersOf(": keep-alive\n\n", "data: a\n\n", ": keep-alive\n\n", "data: b\n\n"), [
      undefined,
      0,
      undefined,
      1
    ])
  })
})
