/**
 * A short `npm run soak`: open streams, mixed requests, clients that leave, and a deploy of every kind of process. Too short to judge
 * how fast resources grow, so it compares them before and after.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { growthIn } from "../../soak/Growth.ts"
import { plot } from "../../soak/Plot.ts"
import { textOf } from "../../soak/Report.ts"
import { monitoredGateway, soak } from "../../soak/Soak.ts"

const streams = 40

it.live("a soak with a deploy of every kind fails no request and leaves nothing behind", () =>
  Effect.gen(function*() {
    const { gateway, monitor } = yield* monitoredGateway(streams)
    const report = yield* Effect.promise(() =>
      soak(gateway, {
        forMs: 30_000,
        leastDeploys: 1,
        streams,
        streamMs: 5_000,
        clients: 4,
        deployEveryMs: 5_000,
        sampleEveryMs: 3_000,
        monitor,
        log: (line) => console.log(line)
      })
    )
    assert.deepStrictEqual(report.failed, {})
    assert.isAtLeast(report.deploys, 1)
    assert.isAtLeast(report.streams, 2 * streams)
    assert.isAtLeast(report.requests, 100)

    const [before, after] = report.atRest
    for (const [name, resources] of before.of) {
      for (const resource of ["connections", "subscriptions", "streams", "consumers"]) {
        const [first = 0, last = 0] = [resources[resource], after.of.get(name)?.[resource]]
        assert.isAtMost(last, first, `${resource} of ${name}`)
      }
    }

    const growth = growthIn(report.samples, 0, 1)
    const text = textOf(report, growth, { plotFile: "soak.svg", minutes: 0.5, settleMinutes: 0, streams })
    const drawing = plot(report.samples)
    for (const [name, resources] of before.of) {
      assert.include(drawing, name)
      for (const resource of Object.keys(resources)) {
        assert.include(text, `| ${name} | ${resource} |`)
        assert.include(drawing, resource)
      }
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 300_000)
