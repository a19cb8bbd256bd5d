/** What tenants with few jobs wait beside one that has dumped nine hundred, and what it costs in throughput. */
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
  /** When each job was begun. */
  const begun = new Map<string, number>()
  let busyMs = 0
  yield* worker(server.url, {
    slots,
    run: (job) =>
      Effect.gen(function*() {
        const from = performance.now()
        begun.set(job.pulled.id, from)
        yield* Effect.orDie(job.claim("mayHaveBeenSent"))
        // this is how long the work takes
        yield* Effect.sleep(jobMs)
        job.reply.start(head)
        job.reply.end(undefined)
        busyMs += performance.now() - from
      })
  })
  const waited = (tenant: string) =>
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
      waited(tenant).pipe(
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
    /** For which share of the time slots were busy, but for the reserve. */
    busy
  }
})
