/** How long tenants with few jobs wait beside one with nine hundred, and what fairness costs in throughput. */
import { Effect } from "effect"
import { reserveOf } from "../../shared/bus/fairness/FairShare.ts"
import { head, ingress, worker } from "../fixture/bus/Sides.ts"
import { untilNoJobs } from "../fixture/nats/JobStream.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { percentile } from "./Percentile.ts"

const slots = 8
const jobMs = 50
const noisyJobs = 900
const quietTenants = ["one", "two", "three", "four"]
const quietEveryMs = 200

export const fairness = Effect.gen(function*() {
  const server = yield* NatsServer.make()
  const face = yield* ingress(server.url)
  /** The start of each job's work. */
  const begun = new Map<string, number>()
  let busyMs = 0
  yield* worker(server.url, {
    slots,
    run: (job) =>
      Effect.gen(function*() {
        const from = performance.now()
        begun.set(job.pulled.id, from)
        yield* Effect.orDie(job.claim("mayHaveBeenSent"))
        // the duration of the work
        yield* Effect.sleep(jobMs)
        job.reply.start(head)
        job.reply.end(undefined)
        busyMs += performance.now() - from
      })
  })
  const measureWait = (tenant: string) =>
    Effect.gen(function*() {
      const from = performance.now()
      const answer = face.submit({ tenant })
      yield* answer.usage
      return (begun.get(answer.job.id) ?? Number.NaN) - from
    })
  const start = performance.now()
  const noisy = Array.from({ length: noisyJobs }, () => face.submit({ tenant: "noisy" }))
  const waits: Array<number> = []
  const quiet = Effect.forEach(quietTenants, (tenant) =>
    Effect.forever(
      measureWait(tenant).pipe(
        Effect.andThen((ms) => Effect.sync(() => waits.push(ms))),
        Effect.andThen(Effect.sleep(quietEveryMs))
      )
    ), { concurrency: "unbounded" })
  const all = Effect.forEach(noisy, (answer) => answer.usage, { concurrency: "unbounded" })
  yield* Effect.raceFirst(all, quiet)
  const tookMs = performance.now() - start
  const busy = busyMs / ((slots - reserveOf(slots)) * tookMs)
  yield* Effect.promise(() => untilNoJobs(server))
  return {
    quietJobs: waits.length,
    p50: percentile(waits, 0.5),
    p95: percentile(waits, 0.95),
    most: Math.max(...waits),
    tookMs,
    /** The share of the time in which the slots outside the reserve were busy. */
    busy
  }
})
