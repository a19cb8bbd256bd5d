/** What a tenant with few jobs waits beside one that has dumped nine hundred, and what it costs in throughput. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { untilNoJobs } from "../fixture/JobStream.ts"
import { NatsServer } from "../fixture/NatsServer.ts"
import { head, ingress, worker } from "./Sides.ts"

const slots = 8
const jobMs = 50
const noisyJobs = 900
const quietTenants = ["one", "two", "three", "four"]
const quietEveryMs = 200

/** A machine whose every process has to wait for its turn adds that wait to each job. */
const quietWaitsAtMostMs = 200

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length * share)] ?? Number.NaN

it.live("quiet tenants wait a moment beside a noisy one, and no slot stays idle for it", () =>
  Effect.gen(function*() {
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
          yield* Effect.orDie(job.claim("neverSent"))
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
    const busy = busyMs / (slots * tookMs)
    const quarters = [0.5, 0.95, 1].map((share) => percentile(waits, Math.min(share, 1 - 1 / waits.length)).toFixed(0))
    yield* Effect.logInfo(
      `${waits.length} quiet jobs waited ${quarters.join(" / ")} ms (p50 / p95 / most) beside ${noisyJobs} in ` +
        `${tookMs.toFixed(0)} ms; slots were busy for ${(100 * busy).toFixed(1)} % of it`
    )
    assert.isAbove(waits.length, 50)
    assert.isAtMost(percentile(waits, 0.95), quietWaitsAtMostMs)
    assert.isAtLeast(busy, 0.9)
    yield* Effect.promise(() => untilNoJobs(server))
  }))
