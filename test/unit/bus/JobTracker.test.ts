/** What ingress does about jobs that their worker, or the listener to their answer, has given up. */
import { assert, describe, it } from "@effect/vitest"
import { headers, type Msg } from "@nats-io/nats-core"
import type { Clock } from "effect"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { encodeSlots } from "../../../shared/bus/fairness/Occupancy.ts"
import type { AnswerListener } from "../../../shared/bus/ingress/JobRequest.ts"
import { JobTracker } from "../../../shared/bus/ingress/JobTracker.ts"
import { encodeBundle, encodeClaim, encodeEntry } from "../../../shared/bus/protocol/Bundle.ts"
import type { Frame, Redispatch } from "../../../shared/bus/protocol/Frame.ts"
import { aboutWorkerSubject, newestVersion, slotsSubject, type Version } from "../../../shared/bus/protocol/Subjects.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { Nats } from "../../../shared/nats/Nats.ts"
import { collectGarbage } from "../../fixture/general/Garbage.ts"

/** A tracker with one worker, which reads jobs up to this version, and what both say. */
const ingress = (version: Version = newestVersion, slots = 4) => {
  const receivers: Array<(message: Msg) => void> = []
  const published: Array<string> = []
  const errors: Array<JobError> = []
  const nats = {
    id: "ingress",
    outbox: {
      publish: (subject: string) => published.push(subject),
      publishNow: () => undefined,
      request: () => new Promise(() => undefined)
    },
    subscribe: (_: string, receive: (message: Msg) => void) => void receivers.push(receive),
    onReconnect: () => undefined,
    isConnected: () => true,
    isSettled: () => true,
    isAlone: () => true
  } as unknown as Nats["Service"]
  const clock = { currentTimeMillisUnsafe: () => 0, monotonicTimeNanosUnsafe: () => 0n } as Clock.Clock
  const limits = { items: 100, itemsPerTenant: 100, window: 64, ageingMs: 5_000 }
  const tracker = new JobTracker(nats, clock, undefined, limits, new TenantBudget(1_000), () => undefined)
  const [onFrame, , onSlots] = receivers
  const subject = aboutWorkerSubject("chat", nats.id, "worker")
  const message = (subject: string, data: Uint8Array): Msg => ({ subject, data, string: () => String(data) }) as Msg
  const submit = (listener: Partial<AnswerListener> = {}, body = new Uint8Array(0)) =>
    tracker.submit({
      workload: "chat",
      pool: "default",
      operation: "chat",
      model: "model",
      tenant: "key_1",
      owner: undefined,
      weight: 1,
      priority: "interactive",
      contentType: "application/json",
      body,
      isPlain: false,
      deadline: 60_000,
      traceparent: undefined
    }, {
      onClaim: () => undefined,
      onWait: () => undefined,
      onStart: () => undefined,
      onChunk: () => undefined,
      onRestart: () => undefined,
      onEnd: () => undefined,
      onError: (error) => void errors.push(error),
      ...listener
    })
  tracker.depth("chat", "default")
  onSlots?.(message(slotsSubject("chat", "default", "worker", version), encodeSlots(slots)))
  return {
    submit,
    /** The worker's bundle with this number claims the job. */
    claim: (bundle: number, job: string, redispatch: Redispatch) =>
      onFrame?.(message(
        subject,
        encodeBundle(bundle, bundle, [encodeClaim({ job, attempt: 1, redispatch, behind: 0 })])
      )),
    /** The worker's bundle with this number has this frame about the job. */
    send: (bundle: number, job: string, frame: Frame) =>
      onFrame?.(message(subject, encodeBundle(bundle, bundle, [encodeEntry(job, 1, frame)]))),
    /** The worker's bundle with this number is a whole answer. */
    answer: (bundle: number, job: string) => {
      const head = { status: 200, contentType: "application/json", headers: {} }
      const frame = { type: "data", sequence: 0, redispatch: "unsent", head, end: { usage: undefined } } as const
      onFrame?.(message(subject, encodeBundle(bundle, bundle, [encodeEntry(job, 1, frame, Buffer.from("{}"))])))
    },
    /** The worker answers a ping, and keeps no bundles. */
    pong: (next: number) => {
      const sent = headers()
      sent.set("Gw-Frame", `pong ${next}`)
      onFrame?.({ ...message(subject, new Uint8Array(0)), headers: sent } as Msg)
    },
    jobs: () => published.filter((subject) => subject.startsWith("jobs")),
    errors
  }
}

describe("a worker that has no link", () => {
  it("has given up its jobs: those that may be repeated go to another worker, and the others fail", () => {
    const { claim, errors, jobs, pong, submit } = ingress()
    claim(0, submit().id, "unsent")
    claim(1, submit().id, "mayHaveBeenSent")
    assert.lengthOf(jobs(), 2)
    // at the next number, or beyond it: what followed was lost
    pong(3)
    assert.lengthOf(jobs(), 3)
    assert.deepStrictEqual(errors.map(({ _tag }) => _tag), ["WorkerLost"])
  })

  it("keeps the jobs of a link that it has opened since it said so", () => {
    const { claim, errors, jobs, pong, submit } = ingress()
    claim(7, submit().id, "unsent")
    claim(8, submit().id, "mayHaveBeenSent")
    pong(7)
    assert.lengthOf(jobs(), 2)
    assert.deepStrictEqual(errors, [])
  })

  it("keeps jobs in version 2, which have no link", () => {
    const { claim, errors, jobs, pong, submit } = ingress(2)
    claim(0, submit().id, "unsent")
    pong(1)
    assert.lengthOf(jobs(), 1)
    assert.deepStrictEqual(errors, [])
  })
})

describe("an answer in one frame", () => {
  it("is not passed on if its head makes the listener cancel the job", () => {
    const { answer, claim, submit } = ingress()
    for (const cancels of [false, true]) {
      const calls: Array<string> = []
      const job = submit({
        onStart: () => {
          calls.push("start")
          if (cancels) job.cancel()
        },
        onChunk: () => void calls.push("chunk"),
        onEnd: () => void calls.push("end")
      })
      claim(cancels ? 2 : 0, job.id, "unsent")
      answer(cancels ? 3 : 1, job.id)
      assert.deepStrictEqual(calls, cancels ? ["start"] : ["start", "chunk", "end"])
    }
  })
})

describe("a job that waits for a provider", () => {
  const waits = { type: "waits", provider: "beta" } as const

  /** An ingress whose tenant has all slots that it may have, which are seven, and two more jobs; the first job is claimed. */
  const full = () => {
    const tracked = ingress(newestVersion, 8)
    const said: Array<string | undefined> = []
    const job = tracked.submit({ onWait: (provider) => void said.push(provider) })
    for (let more = 0; more < 8; more++) tracked.submit()
    tracked.claim(0, job.id, "unsent")
    assert.lengthOf(tracked.jobs(), 7)
    return { ...tracked, job, said }
  }

  it("leaves its slot to another until it works", () => {
    const { answer, job, jobs, said, send } = full()
    send(1, job.id, waits)
    assert.lengthOf(jobs(), 8)
    send(2, job.id, waits)
    send(3, job.id, { type: "works" })
    assert.lengthOf(jobs(), 8)
    assert.deepStrictEqual(said, ["beta", undefined])
    // its end frees the slot that it had taken beyond the share
    answer(4, job.id)
    assert.lengthOf(jobs(), 8)
  })

  it("works if anything of its answer comes", () => {
    const { job, jobs, said, send } = full()
    send(1, job.id, waits)
    const head = { status: 200, contentType: "application/json", headers: {} }
    send(2, job.id, { type: "data", sequence: 0, redispatch: "unsent", head, end: undefined })
    assert.deepStrictEqual(said, ["beta", undefined])
    assert.lengthOf(jobs(), 8)
  })

  it("frees no second slot at its end", () => {
    const { job, jobs, said, send } = full()
    send(1, job.id, waits)
    job.cancel()
    assert.deepStrictEqual(said, ["beta"])
    assert.lengthOf(jobs(), 8)
  })

  it("takes its slot again if it goes to another worker", () => {
    const { job, jobs, pong, said, send } = full()
    send(1, job.id, waits)
    pong(3)
    // published again, and no other instead
    assert.lengthOf(jobs(), 9)
    assert.deepStrictEqual(said, ["beta", undefined])
  })
})

describe("the handle of a job", () => {
  it("does not keep the body in memory when the job has ended", async () => {
    const { answer, claim, submit } = ingress()
    // functions of their own: the test's variables live until its end
    const start = () => {
      const body = new Uint8Array(100)
      return { job: submit({}, body), memory: new WeakRef(body) }
    }
    const ended = start()
    const open = start()
    claim(0, ended.job.id, "unsent")
    answer(1, ended.job.id)
    await collectGarbage()
    assert.isUndefined(ended.memory.deref())
    assert.isDefined(open.memory.deref())
    for (const { job } of [ended, open]) job.cancel()
  })
})
