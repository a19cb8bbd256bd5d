/** Which traces the console decodes at once, which wait until one is asked for, and which are refused. */
import { assert, describe, it } from "@effect/vitest"
import { TraceInbox } from "../../../services/console/traces/TraceInbox.ts"
import { SpanStore } from "../../../services/console/traces/SpanStore.ts"

const bodyOf = (traceId: string, padding = 0): Buffer =>
  Buffer.from(JSON.stringify({
    resourceSpans: [{
      resource: { attributes: [{ key: "padding", value: { stringValue: "x".repeat(padding) } }] },
      scopeSpans: [{
        spans: [{ traceId, spanId: "a", name: "name", kind: 2, startTimeUnixNano: "1", endTimeUnixNano: "2" }]
      }]
    }]
  }))

/** An inbox, the ids of the traces in its store, and its time. */
const open = () => {
  const store = new SpanStore()
  const clock = { now: 0 }
  const inbox = new TraceInbox(store, () => clock.now)
  return { inbox, clock, isDecoded: (id: string) => store.find(id).length > 0 }
}

const large = 256 * 1024

describe("the console's inbox of traces", () => {
  it("decodes what comes slowly, and refuses what is wrong", () => {
    const { inbox, isDecoded } = open()
    assert.isTrue(inbox.add(bodyOf("first")))
    assert.isTrue(isDecoded("first"))
    assert.isFalse(inbox.add(Buffer.from("{}")))
    assert.isFalse(inbox.add(Buffer.from("not JSON")))
    assert.lengthOf(inbox.find("first"), 1)
  })

  it("under load decodes only when a trace is asked for, or when it is calm again", () => {
    const { clock, inbox, isDecoded } = open()
    for (let at = 0; at < 10; at++) assert.isTrue(inbox.add(bodyOf(`${at}`, large)))
    assert.isTrue(isDecoded("2"))
    assert.isFalse(isDecoded("9"))
    assert.lengthOf(inbox.find("9"), 1)
    for (let at = 10; at < 14; at++) inbox.add(bodyOf(`${at}`, large))
    assert.isFalse(isDecoded("13"))
    clock.now += 60_000
    inbox.add(bodyOf("later"))
    assert.isTrue(isDecoded("later"))
    inbox.add(Buffer.from("wrong"))
    assert.lengthOf(inbox.find("13"), 1)
  })

  it("keeps the newest of those that wait", () => {
    const { inbox } = open()
    for (let at = 0; at < 100; at++) inbox.add(bodyOf(`${at}`, large))
    assert.lengthOf(inbox.find("99"), 1)
    assert.isEmpty(inbox.find("50"))
  })
})
