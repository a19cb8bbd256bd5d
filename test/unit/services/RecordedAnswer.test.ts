/** A streamed response reaches its client event by event, and is recorded, whatever texts it contains and however it is cut. */
import { assert, describe, it } from "@effect/vitest"
import { RecordedAnswer } from "../../../services/chat/state/RecordedAnswer.ts"

const sse = { status: 200, contentType: "text/event-stream", headers: {} }

const response = (status: string, more: object = {}) => ({ id: "resp_1", status, output: [], ...more })

/** How OpenAI orders the members of an event, and how vLLM does. */
const orders: Readonly<Record<string, (event: Event) => object>> = {
  "type first": (event) => event,
  "type last": ({ type, ...members }) => ({ ...members, type })
}

interface Event {
  readonly type: string
}

/** The events of a response with these settings of the client, and the lines' end. */
const eventsWith = (settings: object, newline = "\n", order = orders["type first"]!) =>
  [
    { type: "response.created", response: response("in_progress", settings) },
    ...Array.from({ length: 20 }, (_, at) => ({ type: "response.output_text.delta", delta: `word ${at}` })),
    { type: "response.completed", response: response("completed", settings) }
  ].map((event) => [`event: ${event.type}`, `data: ${JSON.stringify(order(event))}`, "", ""].join(newline))

/** Writes a stream in pieces of this size. Returns what passed before the end, all that passed, and what is recorded. */
const record = (stream: string, pieceBytes: number) => {
  const passed: Array<Uint8Array> = []
  const write = (bytes: Uint8Array) => passed.push(bytes) > 0
  const answer = new RecordedAnswer(
    { hasStarted: false, start: () => undefined, write, onDrain: (resume) => resume() },
    { store: true }
  )
  answer.start(sse)
  const bytes = Buffer.from(stream)
  for (let at = 0; at < bytes.length; at += pieceBytes) answer.write(bytes.subarray(at, at + pieceBytes))
  const recorded = answer.response()
  const before = Buffer.concat(passed).toString()
  answer.release()
  return { recorded, before, all: Buffer.concat(passed).toString() }
}

describe.each([1, 7, 300, 1_000_000])("in pieces of %s bytes", (pieceBytes) => {
  const settings: ReadonlyArray<readonly [what: string, settings: object]> = [
    ["without settings", {}],
    ["whose client's metadata has the types of events", {
      metadata: { type: "response.completed", a: "response.created" }
    }],
    ["with a long text before such a type", { instructions: "x".repeat(1_000), user: "response.incomplete" }]
  ]
  const cases = Object.entries(orders).flatMap(([order, apply]) =>
    settings.map(([what, settings]) => [what, order, settings, apply] as const)
  )
  it.for(cases)("a response %s, %s, passes until its end, which is held back", ([, , settings, order]) => {
    const events = eventsWith(settings, "\n", order)
    const { all, before, recorded } = record(events.join(""), pieceBytes)
    assert.deepInclude(recorded, { id: "resp_1", isIncomplete: false })
    for (const event of events.slice(1, -1)) assert.include(before, event)
    assert.include(before, `"store":true`)
    assert.notInclude(before, "event: response.completed")
    assert.include(all, "event: response.completed")
  })

  it("lines may end with CR LF, and the last blank line may be missing", () => {
    for (const stream of [eventsWith({}, "\r\n").join(""), eventsWith({}).join("").trimEnd()]) {
      assert.deepInclude(record(stream, pieceBytes).recorded, { id: "resp_1" })
    }
  })

  it("an answer without an end passes as a whole", () => {
    const stream = eventsWith({}).slice(1, -1).join("") + "data: cut"
    const { all, recorded } = record(stream, pieceBytes)
    assert.isUndefined(recorded)
    assert.strictEqual(all, stream)
  })
})

describe("an answer that is too large to be held", () => {
  const piece = Buffer.alloc(1024 * 1024, " ")
  const count = 80

  /** Writes the beginning, and many pieces after it. Returns how much of them passed, was held at most, and is recorded. */
  const recordLarge = (contentType: string, beginning: string) => {
    const heads: Array<object> = []
    const passed = { bytes: 0, text: "" }
    let isOpen = true
    const answer = new RecordedAnswer({
      hasStarted: false,
      start: (head) => heads.push(head),
      write: (bytes) => {
        passed.bytes += bytes.length
        if (passed.text.length < beginning.length) {
          passed.text += Buffer.from(bytes.subarray(0, beginning.length)).toString()
        }
        return isOpen
      },
      onDrain: (resume) => resume()
    }, { store: true })
    const head = { status: 200, contentType, headers: {} }
    answer.start(head)
    answer.write(Buffer.from(beginning))
    let written = beginning.length
    let mostHeld = 0
    for (let index = 0; index < count; index++) {
      answer.write(piece)
      written += piece.length
      mostHeld = Math.max(mostHeld, written - passed.bytes)
    }
    isOpen = false
    const mayContinue = answer.write(piece)
    const recorded = answer.response()
    answer.release()
    const isWhole = passed.bytes === written + piece.length
    return { recorded, mostHeld, mayContinue, isWhole, heads, text: passed.text, isTooLarge: answer.isTooLarge }
  }

  const json = JSON.stringify(response("completed", { store: false }))
  const event = `data: {"type":"response.completed","response":${json}}\n\n`
  it.each([
    ["JSON", "application/json", json],
    ["a stream after its end", "text/event-stream", event]
  ])("passes as it is, and is not recorded: %s", (_, contentType, beginning) => {
    const { heads, isTooLarge, isWhole, mayContinue, mostHeld, recorded, text } = recordLarge(contentType, beginning)
    assert.isAtMost(mostHeld, 64 * 1024 * 1024)
    assert.isUndefined(recorded)
    assert.isTrue(isTooLarge)
    assert.isTrue(isWhole)
    assert.strictEqual(text, beginning)
    assert.lengthOf(heads, 1)
    assert.isFalse(mayContinue)
  })
})

describe("a response whose last event has no output", () => {
  const message = { id: "msg_1", type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] }
  const call = { id: "fc_1", type: "function_call", call_id: "c", name: "f", arguments: "{\"id\":725653563933458432}" }
  const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item })
  const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item })
  const delta = (type: string, output_index: number, delta: string) => ({
    type: `response.${type}.delta`,
    output_index,
    item_id: "msg_1",
    delta
  })
  const whole = (type: string, output_index: number, all: object) => ({
    type: `response.${type}.done`,
    output_index,
    item_id: "msg_1",
    ...all
  })
  const { content: _content, ...opened } = message
  const spoken = { ...opened, status: "completed", content: [{ type: "output_text", text: "Hi", annotations: [] }] }
  // OpenAI's reference: the end of an item has the item as the output has it
  const rows: ReadonlyArray<readonly [string, unknown, ReadonlyArray<object>, ReadonlyArray<object>]> = [
    ["an empty one", [], [added(0, opened), delta("output_text", 0, "Hi"), done(0, message)], [message]],
    ["none", undefined, [done(0, message)], [message]],
    ["null", null, [done(0, message), done(1, call)], [message, call]],
    ["an empty one, and only starts and deltas before", [], [
      added(0, { ...opened, content: [] }),
      delta("output_text", 0, "H"),
      delta("output_text", 0, "i")
    ], [spoken]],
    ["an empty one, and only deltas before", [], [delta("output_text", 0, "Hi")], [spoken]],
    ["an empty one, and a call without an end", [], [
      done(0, message),
      added(1, { ...call, arguments: "" }),
      delta("function_call_arguments", 1, call.arguments)
    ], [message, { ...call, status: "completed" }]],
    ["an empty one, and only ends of texts before", [], [
      whole("output_text", 0, { text: "Hi" }),
      added(1, { ...call, arguments: "" }),
      whole("function_call_arguments", 1, { arguments: call.arguments })
    ], [spoken, { ...call, status: "completed" }]],
    ["an empty one, and deltas with their end before", [], [
      delta("output_text", 0, "Hi"),
      whole("output_text", 0, { text: "Hi" })
    ], [spoken]],
    ["its own items", [call], [done(0, message)], [call]],
    ["no items at all", [], [], []]
  ]
  it.each(rows)("%s: is recorded and passed on with the items of its events", (_, output, events, expected) => {
    const last = { type: "response.completed", response: { id: "resp_1", status: "completed", output } }
    const created = { type: "response.created", response: { id: "resp_1", status: "in_progress" } }
    const stream = [created, ...events, last].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
    const { all, recorded } = record(stream, 50)
    assert.deepStrictEqual(JSON.parse(`[${Buffer.from(recorded?.output ?? [])}]`), expected)
    const sent = JSON.parse(all.trimEnd().split("\n").at(-1)?.slice("data: ".length) ?? "") as typeof last
    assert.deepStrictEqual(sent.response.output, expected)
    assert.include(all, "\"store\":true")
  })
})
