/** Bundles: they arrive complete, in order and once, whatever is lost on the way, as long as the worker keeps them. */
import { assert, describe, it } from "@effect/vitest"
import type { NatsConnection } from "@nats-io/nats-core"
import { Schema } from "effect"
import { BundleReceiver, type Receipt } from "../../../shared/bus/ingress/BundleReceiver.ts"
import {
  decodeBundle,
  encodeBundle,
  encodeClaim,
  encodeEntry,
  encodeServer,
  type Entry
} from "../../../shared/bus/protocol/Bundle.ts"
import type { Claim, Frame } from "../../../shared/bus/protocol/Frame.ts"
import { BundleSender } from "../../../shared/bus/worker/BundleSender.ts"
import { WorkerLost } from "../../../shared/contract/JobError.ts"
import { Outbox } from "../../../shared/nats/Outbox.ts"

const claim: Claim = { job: "job", attempt: 2, redispatch: "unsent", behind: 7 }
const head = { status: 200, contentType: "text/plain; charset=utf-8", headers: { "x-note": "naïve 漢字" } }
const usage = { inputTokens: 1, outputTokens: 2 }
const frames: ReadonlyArray<Frame> = [
  { type: "claim", redispatch: "idempotent" },
  { type: "pull", offset: 5, length: 6 },
  { type: "heartbeat", sequence: 3 },
  { type: "waits", provider: "naïve beta" },
  { type: "works" },
  { type: "data", sequence: 0, redispatch: "unsent", head, end: undefined },
  { type: "data", sequence: 1, redispatch: "mayHaveBeenSent", head: undefined, end: undefined },
  { type: "data", sequence: 2, redispatch: "mayHaveBeenSent", head: undefined, end: { usage } },
  { type: "data", sequence: 0, redispatch: "unsent", head, end: { usage: undefined } },
  { type: "error", sequence: 4, error: new WorkerLost() }
]

describe("a bundle", () => {
  it("arrives with all its entries", () => {
    const payload = Buffer.from("bytes")
    const entries = frames.map((frame) => encodeEntry("job", 2, frame, frame.type === "data" ? payload : undefined))
    const bundle = decodeBundle(encodeBundle(2 ** 40, 2 ** 33, [encodeServer("N1"), encodeClaim(claim), ...entries]))
    assert.deepStrictEqual({ ...bundle, entries: bundle?.entries.length }, {
      number: 2 ** 40,
      oldest: 2 ** 33,
      isNumbered: true,
      entries: frames.length + 2
    })
    assert.deepStrictEqual(bundle?.entries.slice(0, 2), [{ type: "server", server: "N1" }, { type: "claim", claim }])
    for (const [at, entry] of bundle!.entries.slice(2).entries()) {
      assert(entry.type === "frame" && entry.job === "job" && entry.attempt === 2)
      const frame = frames[at]
      // a frame without head does not say whether another worker may run the job
      assert.deepStrictEqual(entry.frame, frame)
      if (frame?.type === "data") assert.strictEqual(Buffer.from(entry.payload).toString(), "bytes")
    }
  })

  it("without entries has no number of its own", () => {
    const bundle = decodeBundle(encodeBundle(5, 4, []))
    assert.deepStrictEqual(bundle, { number: 5, oldest: 4, isNumbered: false, entries: [] })
  })

  it("leaves out entries of unknown types", () => {
    const bundle = decodeBundle(
      encodeBundle(0, 0, [{ head: "news job 1 x", payload: Buffer.alloc(3) }, encodeClaim(claim)])
    )
    assert.deepStrictEqual(bundle?.entries, [{ type: "claim", claim }])
    assert(bundle?.isNumbered)
  })

  it.prop("that is cut or garbled is no bundle, or has fewer entries, and never throws", [
    Schema.Int,
    Schema.Uint8ArrayFromBase64
  ], ([cut, garbage]) => {
    const whole = encodeBundle(1, 0, frames.map((frame) => encodeEntry("job", 1, frame, Buffer.from("x"))))
    decodeBundle(whole.subarray(0, Math.abs(cut) % whole.length))
    decodeBundle(Buffer.concat([whole.subarray(0, 13), garbage]))
  })
})

/** The largest message that NATS accepts by default, in bytes. */
const maxPayload = 1024 * 1024

/** A worker and an ingress, with a connection between them that loses what `isLost` says. */
const linkOf = (isLost: () => boolean) => {
  let now = 0
  const received: Array<string> = []
  let resent = 0
  const receiver = new BundleReceiver(() => now)
  const onMessage = (data: Uint8Array) => {
    if (isLost()) return
    const bundle = decodeBundle(data)
    assert(bundle !== undefined)
    const { isNext, receipt } = receiver.receive("worker", "chat", bundle, data.length)
    if (receipt !== undefined) onReceipt(receipt)
    if (isNext) { for (const entry of bundle.entries) if (entry.type === "frame") received.push(textOf(entry)) }
  }
  const onReceipt = ({ number, type }: Receipt) => {
    if (isLost()) return
    if (type === "ack") return sender.acknowledge("ingress", number)
    resent++
    sender.resend("ingress", number)
  }
  const publish = (_: string, data: Uint8Array) => {
    assert.isAtMost(data.length, maxPayload, "NATS refuses the message")
    onMessage(data)
  }
  const connection = { publish } as unknown as NatsConnection
  const outbox = new Outbox(connection, (_, cause) => assert.fail(String(cause)))
  const tooLarge: Array<string> = []
  const sender = new BundleSender({
    outbox,
    workload: "chat",
    worker: "worker",
    now: () => now,
    server: () => "N1",
    onTooLarge: (job) => tooLarge.push(job)
  })
  const source = { job: "job", attempt: 1, ingress: "ingress", subject: "", control: "" }
  let sequence = 0
  const add = (payload: Uint8Array) => {
    sender.send(
      source,
      { type: "data", sequence: sequence++, redispatch: "unsent", head: undefined, end: undefined },
      payload
    )
  }
  return {
    received,
    tooLarge,
    sender,
    receiver,
    resent: () => resent,
    add,
    send: (payload: Uint8Array) => {
      add(payload)
      outbox.flush()
    },
    /** Both sides' timers, after this many milliseconds. */
    pass: (ms: number) => {
      now += ms
      for (const [, , receipt] of receiver.due()) onReceipt(receipt)
      sender.check()
    },
    /** Whether the worker still keeps something. */
    isKept: () => {
      let isKept = true
      sender.afterAcknowledgement(() => void (isKept = false))
      return isKept
    }
  }
}

const textOf = (entry: Extract<Entry, { readonly type: "frame" }>): string => Buffer.from(entry.payload).toString()

describe("a link", () => {
  it.prop("loses nothing, whatever the connection loses", [
    Schema.Array(Schema.Boolean).check(Schema.isMinLength(1), Schema.isMaxLength(200))
  ], ([losses]) => {
    let at = 0
    const link = linkOf(() => losses[at++] ?? false)
    const sent = Array.from({ length: 50 }, (_, index) => `${index}`)
    for (const text of sent) {
      link.send(Buffer.from(text))
      link.pass(50)
    }
    // five seconds are enough once nothing is lost any more
    at = losses.length
    for (let round = 0; round < 10; round++) link.pass(500)
    assert.deepStrictEqual(link.received, sent)
    assert(!link.isKept())
  }, { arbitrary: { runs: 300 } })

  it("sends nothing again while nothing is lost", () => {
    const link = linkOf(() => false)
    for (let index = 0; index < 1_000; index++) {
      link.send(Buffer.from(`${index}`))
      link.pass(1)
    }
    assert.strictEqual(link.received.length, 1_000)
    assert.strictEqual(link.resent(), 0)
  })

  it("keeps at most 64 MiB, and goes on after what it has given up", () => {
    let isAway = true
    const link = linkOf(() => isAway)
    const part = Buffer.alloc(256 * 1024, "x")
    for (let index = 0; index < 300; index++) link.send(part)
    isAway = false
    for (let round = 0; round < 40; round++) link.pass(500)
    // 75 MiB were sent
    assert.isAtLeast(link.received.length, 250)
    assert.isAtMost(link.received.length, 256)
    link.send(Buffer.from("next"))
    assert.strictEqual(link.received.at(-1), "next")
    assert(!link.isKept() || link.sender.ask("ingress"))
  })

  it("fails the job of a frame that no bundle can carry, and goes on", () => {
    const link = linkOf(() => false)
    const longHead = { ...head, headers: { "x-long": "x".repeat(70_000) } }
    const frame: Frame = { type: "data", sequence: 0, redispatch: "unsent", head: longHead, end: undefined }
    link.sender.send(about, frame, Buffer.from("after a long head"))
    link.send(Buffer.alloc(2 * maxPayload))
    link.send(Buffer.from("next"))
    const error = JSON.stringify({ _tag: "InternalError" })
    assert.deepStrictEqual(link.received, [error, error, "next"])
    assert.deepStrictEqual(link.tooLarge, ["job", "job"])
    assert(!link.isKept())
  })

  it("that is forgotten sends nothing that waits, and uses none of its numbers twice", () => {
    const link = linkOf(() => false)
    link.send(Buffer.from("one"))
    link.add(Buffer.from("never sent"))
    link.sender.forget("ingress")
    link.send(Buffer.from("two"))
    link.send(Buffer.from("three"))
    assert.deepStrictEqual(link.received, ["one", "two", "three"])
  })

  it("starts with a number that it has never used, after it was forgotten", () => {
    const link = linkOf(() => false)
    link.send(Buffer.from("one"))
    link.sender.forget("ingress")
    link.send(Buffer.from("two"))
    assert.deepStrictEqual(link.received, ["one", "two"])
  })
})

const flushedSizes = (add: (sender: BundleSender) => void): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  const connection = {
    publish: (_: string, data: Uint8Array) => void sizes.push(data.length)
  } as unknown as NatsConnection
  const outbox = new Outbox(connection, (_, cause) => assert.fail(String(cause)))
  const sender = new BundleSender({
    outbox,
    workload: "chat",
    worker: "worker",
    now: () => 0,
    server: () => "N1",
    onTooLarge: (job) => assert.fail(job)
  })
  add(sender)
  outbox.flush()
  return sizes
}

const about = { job: "job", attempt: 1, ingress: "ingress", subject: "", control: "" }

it("large bundles are divided", () => {
  const payload = Buffer.alloc(256 * 1024)
  const sizes = flushedSizes((sender) => {
    for (let sequence = 0; sequence < 5; sequence++) {
      sender.send(about, { type: "data", sequence, redispatch: "unsent", head: undefined, end: undefined }, payload)
    }
  })
  assert.strictEqual(sizes.length, 3)
  for (const size of sizes) assert.isBelow(size, 1024 * 1024)
})

it("bundles of many entries without content are divided, too", () => {
  const sizes = flushedSizes((sender) => {
    for (let sequence = 0; sequence < 50_000; sequence++) sender.send(about, { type: "heartbeat", sequence })
  })
  assert.isAbove(sizes.length, 1)
  for (const size of sizes) assert.isBelow(size, 1024 * 1024)
})
