/** A short `npm run soak`: a gateway under load for a minute, with deploys. No process may grow much, and no request fail. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { type Growth, growthIn } from "../../soak/Growth.ts"
import { failures } from "../../soak/Report.ts"
import { gatewayFor, soak } from "../../soak/Soak.ts"

const streams = 20

/**
 * What code and caches need in the first minute would be much for an hour; a leak of 10 KB per request is more. The resident memory is
 * not judged: in the first minutes V8 lets its heap grow.
 */
const mbPerHour = 600
const isJudged = ({ resource }: Growth) => resource !== "RSS (MB)"

it.live(
  "a minute under load leaves nothing behind in the processes that are never restarted",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      const nats = yield* NatsServer.make({ words: ["--http_port", String(port)] })
      const gateway = yield* Gateway.makeOn(nats, gatewayFor(streams))
      const report = yield* Effect.promise(() =>
        soak(gateway, {
          forMs: 60_000,
          streams,
          streamMs: 10_000,
          clients: 4,
          deployEveryMs: 20_000,
          sampleEveryMs: 2_000,
          monitor: `http://127.0.0.1:${port}`,
          log: (line) => console.log(line)
        })
      )
      assert.isAbove(report.streams, streams)
      assert.isAtLeast(report.deploys, 1)
      const growth = growthIn(report.samples, 20_000, mbPerHour).filter(isJudged)
      assert.deepStrictEqual(failures(report, growth), [])
    })),
  300_000
)
