/** A relayed body is read only if something in it is unknown or has to change. */
import { assert, describe, it } from "@effect/vitest"
import type { Call } from "../../../../shared/provider/call/Protocol.ts"
import { RelayedBody } from "../../../../shared/provider/exchange/RelayedBody.ts"

const open = (text: string, { isPlain, model = "bench" }: { readonly isPlain?: boolean; readonly model?: string }) => {
  const body = Buffer.from(text)
  const relayed = new RelayedBody({ body, isPlain, model: "bench", endpoint: { model } } as unknown as Call)
  relayed.setModel()
  return { body, relayed }
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

describe("a body that is known to be plain", () => {
  it("passes unread if the provider has the same name for its model", () => {
    const { body, relayed } = open("unread", { isPlain: true })
    assert.isFalse(relayed.streams)
    assert.strictEqual(relayed.toBytes("messages"), body)
  })

  it("gets the provider's name for its model", () => {
    const { relayed } = open("{\"model\": \"bench\", \"n\": 1.0}", { isPlain: true, model: "theirs" })
    assert.strictEqual(text(relayed.toBytes("messages")), "{\"model\": \"theirs\", \"n\": 1.0}")
  })
})

describe("any other body", () => {
  it.each([
    ["asks for a stream", "{\"model\":\"bench\",\"stream\":true}", true, undefined],
    ["asks for none", "{\"model\":\"bench\",\"stream\":false}", false, undefined],
    ["names another model", "{\"model\":\"other\"}", false, "{\"model\":\"bench\"}"],
    ["names no model", "{\"n\":1}", false, "{\"model\":\"bench\",\"n\":1}"]
  ])("%s", (_, json, streams, changed) => {
    const { body, relayed } = open(json, {})
    assert.strictEqual(relayed.streams, streams)
    assert.strictEqual(text(relayed.toBytes("messages")), changed ?? text(body))
  })
})
