/** When ingress asks JetStream again for jobs that no worker has claimed. */
import { assert, describe, it } from "@effect/vitest"
import type { Msg } from "@nats-io/nats-core"
import { JobPool } from "../../../shared/bus/ingress/JobPool.ts"
import { OpenJob } from "../../../shared/bus/ingress/OpenJob.ts"
import { Publications } from "../../../shared/bus/ingress/Publications.ts"
import type { Outbox } from "../../../shared/nats/Outbox.ts"

const tickMs = 50

/** Unclaimed jobs of one pool, at a JetStream that answers when the test says so. */
const publish = (count: number) => {
  let now = 0
  let isSilent = true
  /** Where the stream stores messages, and up to where the queue was delivered. */
  const queue = { seq: 1, duplicate: true, delivered: { stream_seq: 0 } }
  const asked: Array<{ readonly id: string; readonly at: number }> = []
  const request: Outbox["request"] = (_subject, _payload, headers, timeoutMs) => {
    const id = jobs.find(({ id }) => headers.includes(id))?.id
    if (id !== undefined) asked.push({ id, at: now })
    const lostAt = now + timeoutMs
    return isSilent
      ? new Promise((_resolve, reject) => timeouts.push({ at: lostAt, end: () => reject(new Error("timeout")) }))
      : Promise.resolve({ json: () => structuredClone(queue) } as unknown as Msg)
  }
  const timeouts: Array<{ readonly at: number; readonly end: () => void }> = []
  const pool = new JobPool<OpenJob>({ items: 100, itemsPerTenant: 100, window: 64, ageingMs: 5_000 })
  const jobs = Array.from({ length: count }, () => {
    const job = new OpenJob(
      {
        workload: "chat",
        pool: "default",
        operation: "chat",
        model: "model",
        tenant: "key_1",
        owner: undefined,
        weight: 1,
        priority: "interactive",
        contentType: "application/json",
        body: new Uint8Array(0),
        isPlain: false,
        deadline: 60_000,
        traceparent: undefined
      },
      {
        onClaim: () => undefined,
        onWait: () => undefined,
        onStart: () => undefined,
        onChunk: () => undefined,
        onRestart: () => undefined,
        onEnd: () => undefined,
        onError: () => undefined
      },
      pool,
      60_000
    )
    job.state = { state: "Published", attempt: 1, losses: 0 }
    job.version = pool.version
    return job
  })
  const overtaken = new Set<string>()
  const publications = new Publications({
    outbox: { request } as Outbox,
    ingress: "ingress",
    now: () => now,
    jobs,
    onConfirm: () => undefined,
    onOvertaken: ({ id }) => overtaken.add(id),
    onFull: () => assert.fail("full")
  })
  for (const job of jobs) publications.published(job)
  return {
    asked,
    jobs,
    pool,
    queue,
    publications,
    /** Whether to attempt the job again. */
    isOvertaken: (job: OpenJob) => {
      overtaken.clear()
      publications.watch(job)
      return overtaken.has(job.id)
    },
    answer: () => {
      isSilent = false
    },
    /** Runs the ticks of so many milliseconds. */
    pass: async (ms: number) => {
      for (const until = now + ms; now < until;) {
        now += tickMs
        for (const { at, end } of timeouts) if (at === now) end()
        // what was answered is heard before the next tick
        await new Promise(setImmediate)
        for (const job of jobs) publications.watch(job)
      }
      await new Promise(setImmediate)
    }
  }
}

describe("a job that later ones have overtaken", () => {
  it("is asked about, because the stream may have lost it", async () => {
    const { answer, asked, jobs, pass, publications } = publish(2)
    const [job, later] = jobs as [OpenJob, OpenJob]
    answer()
    publications.claimed(later)
    await pass(400)
    assert.include(asked.map(({ id }) => id), job.id)
  })

  it("keeps its last attempt until the stream is past what it has lost", async () => {
    const { answer, isOvertaken, jobs, pass, publications, queue } = publish(1)
    const [job] = jobs as [OpenJob]
    answer()
    queue.delivered.stream_seq = 9
    await pass(2_500)
    assert.isTrue(isOvertaken(job))
    job.state = { state: "Published", attempt: 2, losses: 0 }
    queue.seq++
    publications.published(job)
    await pass(2_500)
    assert.isFalse(isOvertaken(job))
    queue.delivered.stream_seq = 10
    await pass(1_000)
    assert.isTrue(isOvertaken(job))
  })

  it("makes its last attempt if the stream stores that as the next message to deliver", async () => {
    const { answer, isOvertaken, jobs, pass, publications, queue } = publish(1)
    const [job] = jobs as [OpenJob]
    answer()
    queue.delivered.stream_seq = 2
    await pass(2_500)
    assert.isTrue(isOvertaken(job))
    job.state = { state: "Published", attempt: 2, losses: 0 }
    queue.seq = 2
    publications.published(job)
    await pass(2_500)
    assert.isTrue(isOvertaken(job))
  })
})

describe("a stream that does not answer", () => {
  it("is asked about one job at a time, four times a second", async () => {
    const { asked, pass } = publish(20)
    await pass(300)
    assert.lengthOf(asked, 20)
    await pass(1_700)
    assert.isAtLeast(asked.length, 20 + 4)
    assert.isAtMost(asked.length, 20 + 8)
  })

  it("is asked about all jobs as soon as it has answered about one", async () => {
    const { answer, asked, pass } = publish(20)
    await pass(1_000)
    const before = asked.length
    answer()
    await pass(350)
    assert.sameMembers([...new Set(asked.slice(before).map(({ id }) => id))], asked.slice(0, 20).map(({ id }) => id))
    assert.isAtMost(asked.length - before, 21)
    // the questions from before end without an answer, which is no news
    await pass(1_500)
    assert.isAtMost(asked.length - before, 41)
  })
})
