/** Copies of requests for a second model, with a bus that the test controls. */
import { assert, describe, it } from "@effect/vitest"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import type { OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InternalError } from "../../../shared/contract/JobError.ts"
import { ShadowTraffic } from "../../../services/ingress/routes/ShadowTraffic.ts"

const models = new Map<string, OfferedModel>([["other", { workload: "chat", pool: "spare" }]])

const request: JobRequest = {
  workload: "chat",
  pool: "default",
  operation: "chat.completions",
  model: "primary",
  tenant: "key_1",
  owner: undefined,
  weight: 4,
  priority: "interactive",
  contentType: "application/json",
  headers: { "x-session-id": "1" },
  body: Buffer.from("{}"),
  isPlain: true,
  deadline: 30_000,
  traceparent: "00-1"
}

/** Draws the given numbers again and again. */
const make = (draws: ReadonlyArray<number> = [0]) => {
  const sent: Array<{ readonly request: JobRequest; readonly answer: AnswerListener; taken: number }> = []
  const jobs = {
    submit: (request: JobRequest, answer: AnswerListener) => {
      const job = { request, answer, taken: 0 }
      sent.push(job)
      return {
        id: "job",
        taken: (bytes: number) => (job.taken += bytes),
        flushed: () => undefined,
        cancel: () => undefined
      }
    }
  } as unknown as JobClient["Service"]
  let drawn = 0
  const random = { nextDoubleUnsafe: () => draws[drawn++ % draws.length]!, nextIntUnsafe: () => 0 }
  const traffic = new ShadowTraffic(jobs, random)
  const copy = (times = 1, share = 1, given = request, model = "other") => {
    for (let time = 0; time < times; time++) traffic.copy(given, { model, share }, { models })
  }
  return { sent, copy }
}

describe("shadow traffic", () => {
  it("is a copy of the request for the other model and its pool, in class batch, of a tenant of its own", () => {
    const { copy, sent } = make()
    copy()
    assert.deepStrictEqual(sent.map(({ request }) => request), [{
      ...request,
      model: "other",
      isPlain: false,
      pool: "spare",
      tenant: "shadow",
      weight: 1,
      priority: "batch",
      traceparent: undefined,
      parent: undefined,
      reservedBytes: 0
    }])
  })

  it("is the share of the requests, and none for a model that is gone", () => {
    const { copy, sent } = make([0, 0.25, 0.5, 0.75])
    copy(8, 0.5)
    assert.lengthOf(sent, 4)
    copy(8, 1, request, "gone")
    assert.lengthOf(sent, 4)
  })

  it("takes answers as fast as they come", () => {
    const { copy, sent } = make()
    copy()
    const [job] = sent
    job!.answer.onChunk(Buffer.alloc(100), false)
    job!.answer.onChunk(Buffer.alloc(50), true)
    assert.strictEqual(job!.taken, 150)
  })

  it("is bounded in number and in bytes, until answers end", () => {
    const { copy, sent } = make()
    copy(150)
    assert.lengthOf(sent, 100)
    sent[0]!.answer.onEnd(undefined)
    sent[1]!.answer.onError(new InternalError())
    copy(3)
    assert.lengthOf(sent, 102)

    const large = make()
    large.copy(5, 1, { ...request, body: Buffer.alloc(5 * 1024 * 1024) })
    assert.lengthOf(large.sent, 3)
    large.sent[0]!.answer.onEnd(undefined)
    large.copy(1, 1, { ...request, body: Buffer.alloc(5 * 1024 * 1024) })
    assert.lengthOf(large.sent, 4)
  })
})
