/** The table of metrics, and their bounded number of series. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

const readme = join(import.meta.dirname, "../../../shared/telemetry/README.md")

describe("the table of metrics", () => {
  it("is in the README", async () => {
    assert.include(await readFile(readme, "utf8"), `\n${Metrics.toMarkdown()}\n`)
  })

  it("names each metric once, with its unit as a suffix", () => {
    const names = Metrics.table.map(({ name }) => name)
    assert.lengthOf(new Set(names), names.length)
    for (const { kind, name } of Metrics.table) {
      assert.match(name, /^gateway_[a-z_]+$/)
      assert.strictEqual(name.endsWith("_total"), kind === "counter", name)
      if (kind === "histogram") assert.match(name, /_seconds$/)
    }
  })
})

describe("a metric", () => {
  it.effect("combines series beyond its bound into one", () =>
    Effect.gen(function*() {
      for (let index = 0; index < 5_000; index++) Metrics.update(Metrics.keyRequests(`key_${index}`, "success"), 1)
      const lines = (yield* PrometheusMetrics.format()).split("\n").filter((line) =>
        line.startsWith("gateway_key_requests_")
      )
      assert.lengthOf(lines, 2_001)
      assert.include(lines, "gateway_key_requests_total{key=\"other\",outcome=\"other\"} 3000")
    }))

  it.effect("with an observer ends with its scope", () =>
    Effect.gen(function*() {
      let jobs = 1
      const told = PrometheusMetrics.format().pipe(Effect.map((text) => /^gateway_worker_jobs.*$/m.exec(text)?.[0]))
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Metrics.observe(Metrics.workerJobs("chat", "default"), () => jobs)
        jobs = 7
        assert.strictEqual(yield* told, "gateway_worker_jobs{workload=\"chat\",pool=\"default\"} 7")
      }))
      assert.isUndefined(yield* told)
    }))
})
