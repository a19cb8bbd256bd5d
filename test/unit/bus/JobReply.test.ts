/** The worker's side of an answer: the frames it sends to ingress, and its reactions to ingress's control messages. */
import { assert, describe, it } from "@effect/vitest"
import type { Msg, NatsConnection, PublishOptions } from "@nats-io/nats-core"
import { decodeFrame, type Frame } from "../../../shared/bus/protocol/Frame.ts"
import { frameBytes, heartbeatMs, windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { JobReply } from "../../../shared/bus/worker/JobReply.ts"
import { SingleFrames } from "../../../shared/bus/worker/SingleFrames.ts"
import { WorkerLost } from "../../../shared/contract/JobError.ts"
import { Outbox } from "../../../shared/nats/Outbox.ts"

const head = { status: 200, contentType: "text/plain", headers: {} }

/** The message as ingress receives it. */
const received = (subject: string, data: Uint8Array, options: PublishOptions): Msg => {
  const encoded = options.headers as { readonly encode: () => Uint8Array } | undefined
  const text = encoded === undefined ? undefined : Buffer.from(encoded.encode()).toString("latin1")
  const headers = text === undefined ? undefined : {
    code: 0,
    get: (name: string) => new RegExp(`^${name}: (.*)\r$`, "m").exec(text)?.[1] ?? ""
  }
  const string = () => Buffer.from(data).toString()
  return { subject, data, string, headers, reply: options.reply } as unknown as Msg
}

/** A reply on a clock that the test sets. `sent` returns the frames since its last call. */
const openReply = () => {
  const messages: Array<{ readonly frame: Frame; readonly bytes: number }> = []
  const publish = (subject: string, data: Uint8Array, options: PublishOptions) => {
    const message = received(subject, data, options)
    const frame = decodeFrame(message)
    assert(frame !== undefined, "every message is a frame")
    messages.push({ frame, bytes: data.length })
  }
  const outbox = new Outbox({ publish } as unknown as NatsConnection, (_, cause) => assert.fail(String(cause)))
  const time = { now: 0 }
  let cancels = 0
  const reply = new JobReply({
    outbox,
    channel: new SingleFrames(outbox, "chat", "worker"),
    workload: "chat",
    worker: "worker",
    job: "job",
    attempt: 1,
    behind: 5,
    subject: "r.chat.ingress.job.1",
    now: () => time.now,
    onCancel: () => void cancels++
  })
  const flush = () => {
    outbox.flush()
    return messages.splice(0)
  }
  const sent = () => flush().map(({ frame }) => frame)
  return { reply, time, flush, sent, cancels: () => cancels }
}

const bytes = (length: number) => new Uint8Array(length)
const typesOf = (frames: ReadonlyArray<Frame>) => frames.map(({ type }) => type)

describe("the frames of an answer", () => {
  it("collect everything written between two sends, after the claim", () => {
    const { flush, reply } = openReply()
    reply.claim("unsent")
    reply.start(head)
    reply.write(bytes(3))
    reply.write(bytes(4))
    assert.deepStrictEqual(flush(), [
      {
        frame: { type: "claims", claims: [{ job: "job", attempt: 1, redispatch: "unsent", behind: 5 }] },
        bytes: 18
      },
      { frame: { type: "data", sequence: 0, redispatch: "unsent", head, end: undefined }, bytes: 7 }
    ])
  })

  it("are split by size, with the head in the first frame and the end in the last", () => {
    const { flush, reply } = openReply()
    const usage = { inputTokens: 1, outputTokens: 2 }
    reply.start(head)
    reply.write(bytes(2 * frameBytes + 1))
    reply.end(usage)
    assert.deepStrictEqual(
      flush().map(({ bytes, frame }) => frame.type === "data" && [frame.sequence, bytes, frame.head, frame.end]),
      [[0, frameBytes, head, undefined], [1, frameBytes, undefined, undefined], [2, 1, undefined, { usage }]]
    )
    assert.isTrue(reply.isOver)
  })

  it("put an error after everything written before it", () => {
    const { reply, sent } = openReply()
    reply.start(head)
    reply.write(bytes(1))
    reply.fail(new WorkerLost())
    const [data, error] = sent()
    assert.deepInclude(data, { type: "data", sequence: 0, end: undefined })
    assert.deepInclude(error, { type: "error", sequence: 1 })
  })

  it("never precede the job's claim", () => {
    const { reply, sent } = openReply()
    reply.claim("idempotent")
    reply.fail(new WorkerLost())
    assert.deepStrictEqual(typesOf(sent()), ["claims", "error"])
  })

  it("stop after the end, even if more is written", () => {
    const { reply, sent } = openReply()
    reply.end(undefined)
    assert.deepStrictEqual(typesOf(sent()), ["data"])
    reply.write(bytes(1))
    reply.end(undefined)
    reply.fail(new WorkerLost())
    reply.heartbeat()
    reply.claimAgain()
    assert.deepStrictEqual(sent(), [])
  })
})

describe("the client's window", () => {
  it("pauses the writer until the client has taken enough", () => {
    const { reply } = openReply()
    let resumed = 0
    assert.isTrue(reply.write(bytes(windowBytes - 1)))
    reply.onDrain(() => void resumed++)
    assert.strictEqual(resumed, 1, "a writer that need not wait continues at once")
    assert.isFalse(reply.write(bytes(11)))
    reply.onDrain(() => void resumed++)
    reply.receive({ type: "credit", bytes: 10 })
    assert.strictEqual(resumed, 1)
    reply.receive({ type: "credit", bytes: 11 })
    assert.strictEqual(resumed, 2)
    reply.receive({ type: "credit", bytes: 12 })
    assert.strictEqual(resumed, 2, "it resumes once")
  })
})

describe("a heartbeat", () => {
  it("carries the number of the next frame, and is skipped shortly after a frame", () => {
    const { reply, sent, time } = openReply()
    reply.start(head)
    assert.lengthOf(sent(), 1)
    time.now = heartbeatMs / 2 - 1
    reply.heartbeat()
    assert.deepStrictEqual(sent(), [])
    time.now = heartbeatMs / 2
    reply.heartbeat()
    assert.deepStrictEqual(sent(), [{ type: "heartbeat", sequence: 1 }])
    time.now += heartbeatMs / 2 - 1
    reply.heartbeat()
    assert.deepStrictEqual(sent(), [])
  })
})

describe("a claim", () => {
  it("that waits is repeated until ingress agrees, and commits the job only if it may no longer be redispatched", () => {
    for (const redispatch of ["unsent", "mayHaveBeenSent"] as const) {
      const { reply, sent } = openReply()
      const answers: Array<boolean> = []
      reply.claimAndWait(redispatch, (go) => answers.push(go))
      reply.repeatClaim()
      const claim: Frame = { type: "claim", redispatch }
      assert.deepStrictEqual(sent(), [claim, claim])
      assert.isFalse(reply.isCommitted)
      reply.receive({ type: "go", redispatch })
      reply.repeatClaim()
      assert.deepStrictEqual(sent(), [])
      assert.deepStrictEqual(answers, [true])
      assert.strictEqual(reply.isCommitted, redispatch === "mayHaveBeenSent")
    }
  })

  it("that waits is given up after its last repetition, and not before", () => {
    const { reply, sent } = openReply()
    const answers: Array<boolean> = []
    reply.claimAndWait("mayHaveBeenSent", (go) => answers.push(go))
    for (let at = 1; at < 24; at++) reply.repeatClaim()
    assert.deepStrictEqual([answers, sent().length], [[], 24])
    for (let at = 0; at < 2; at++) reply.repeatClaim()
    assert.deepStrictEqual([answers, sent()], [[false], []])
  })

  it("is not confirmed by a late reply to a weaker claim", () => {
    const { reply } = openReply()
    const answers: Array<boolean> = []
    reply.claimAndWait("mayHaveBeenSent", (go) => answers.push(go))
    reply.receive({ type: "go", redispatch: "unsent" })
    assert.deepStrictEqual(answers, [])
    assert.isFalse(reply.isCommitted)
    reply.receive({ type: "go", redispatch: "mayHaveBeenSent" })
    assert.deepStrictEqual(answers, [true])
  })

  it("that ingress refuses is reported, and stops the work once", () => {
    const { cancels, reply } = openReply()
    const answers: Array<boolean> = []
    reply.claimAndWait("mayHaveBeenSent", (go) => answers.push(go))
    reply.receive({ type: "no", fate: "over" })
    reply.receive({ type: "no", fate: "over" })
    reply.receive({ type: "go", redispatch: "mayHaveBeenSent" })
    assert.deepStrictEqual(answers, [false])
    assert.strictEqual(cancels(), 1)
    assert.isFalse(reply.isCommitted)
  })

  it("is repeated after a reconnect with its current state", () => {
    const { reply, sent } = openReply()
    reply.claimAgain()
    assert.deepStrictEqual(sent(), [], "nothing was claimed")
    reply.claim("unsent")
    reply.claimAndWait("mayHaveBeenSent", () => undefined)
    reply.receive({ type: "go", redispatch: "mayHaveBeenSent" })
    sent()
    reply.claimAgain()
    assert.deepStrictEqual(sent(), [{
      type: "claims",
      claims: [{ job: "job", attempt: 1, redispatch: "mayHaveBeenSent", behind: 5 }]
    }])
  })
})

describe("a cancelled answer", () => {
  it("drops pending frames, stops the work once and resumes a paused writer", () => {
    const { cancels, reply, sent } = openReply()
    let resumed = 0
    const answers: Array<boolean> = []
    reply.start(head)
    assert.isFalse(reply.write(bytes(windowBytes)))
    reply.onDrain(() => void resumed++)
    reply.claimAndWait("mayHaveBeenSent", (go) => answers.push(go))
    sent()
    reply.write(bytes(1))
    reply.receive({ type: "cancel", fate: "over" })
    reply.receive({ type: "cancel", fate: "over" })
    assert.deepStrictEqual(sent(), [])
    assert.deepStrictEqual([resumed, cancels(), reply.isOver], [1, 1, true])
    assert.deepStrictEqual(answers, [], "the work is stopped; the claim is not refused")
  })
})
