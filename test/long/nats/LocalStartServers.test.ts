/** `npm start` with the oldest supported nats-server and with newer ones: every stream is created, and each workload answers. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { makePlace, program, project } from "../../fixture/gateway/LocalGateway.ts"
import { natsServerFromPip } from "../../fixture/nats/NewNatsServer.ts"

/** Debian's is the oldest that the gateway supports. */
const versions = ["on the PATH", "2.12.8", "2.15.1"]

describe("npm start", () => {
  it.live.each(versions)("is ready with nats-server %s", (version) =>
    Effect.scoped(Effect.gen(function*() {
      const place = yield* makePlace
      const folder = version === "on the PATH"
        ? []
        : [dirname(yield* Effect.promise(() => natsServerFromPip(version)))]
      const started = yield* program(process.execPath, [join(project, "deploy/local/launch.js")], {
        ...place.environment,
        GATEWAY_SERVICES: undefined,
        PATH: [...folder, process.env["PATH"]].join(delimiter)
      })
      yield* started.line(/^ready /)
      const logs = ["ingress", "chat", "video", "console"].map((name) =>
        readFileSync(join(place.data, "logs", `${name}.log`), "utf8")
      )
      for (const log of logs) assert.notInclude(log, "waiting for JetStream")
    })).pipe(Effect.provide(NodeServices.layer)))
})
