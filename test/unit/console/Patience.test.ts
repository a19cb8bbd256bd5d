/** How long the admin API waits for NATS. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { HttpApiTest } from "effect/http-api"
import { TestClock } from "effect/testing"
import { everything } from "../../../services/console/access/Scopes.ts"
import { ConsoleApi } from "../../../services/console/api/Api.ts"
import * as KeyHandlers from "../../../services/console/handlers/KeyHandlers.ts"
import { RequestLog } from "../../../services/console/handlers/RequestLog.ts"
import { TokenOwners } from "../../../services/console/handlers/TokenOwners.ts"
import * as UsageHandlers from "../../../services/console/handlers/UsageHandlers.ts"
import { Webhooks } from "../../../services/console/handlers/WebhookHandlers.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { layerSignedIn } from "../../fixture/identity/SignedIn.ts"

/** The API over usage counters that take `readingMs` to read. */
const clientOver = (readingMs: number) =>
  HttpApiTest.groups(ConsoleApi, ["keys", "usage"]).pipe(
    Effect.provide(
      Layer.mergeAll(KeyHandlers.layer, UsageHandlers.layer).pipe(
        Layer.provide([
          Layer.mock(KeyStore)({ list: Effect.succeed([]) }),
          Layer.mock(TeamStore)({}),
          Layer.mock(KeyAudit)({ latest: () => Effect.never }),
          Layer.mock(UsageCounters)({
            query: () => Effect.as(Effect.sleep(readingMs), []),
            lastDays: () => Effect.succeed(new Map())
          }),
          Layer.mock(RequestLog)({}),
          Layer.mock(TokenOwners)({}),
          Layer.mock(Webhooks)({} as never)
        ]),
        Layer.provideMerge(layerSignedIn({ name: "Ada", role: "admin", teams: [], session: null }, everything))
      )
    )
  )

const days = { from: "2026-09-01", to: "2026-11-30" }

describe("the admin API", () => {
  it.effect("waits while counters are read: hundreds of keys have counters for each of ninety days", () =>
    Effect.gen(function*() {
      const client = yield* clientOver(29_000)
      const keys = yield* Effect.forkChild(client.keys.list())
      const rows = yield* Effect.forkChild(client.usage.query({ query: { ...days, by: "key" } }))
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(yield* Fiber.join(keys), [])
      assert.deepStrictEqual(yield* Fiber.join(rows), [])
    }))

  it.effect("gives up in time on everything", () =>
    Effect.gen(function*() {
      const client = yield* clientOver(31_000)
      const changes = yield* Effect.forkChild(Effect.flip(client.keys.changes()))
      const keys = yield* Effect.forkChild(Effect.flip(client.keys.list()))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(changes))._tag, "Unavailable")
      yield* TestClock.adjust("25 seconds")
      assert.strictEqual((yield* Fiber.join(keys))._tag, "Unavailable")
    }))
})
