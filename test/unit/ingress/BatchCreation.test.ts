/**
 * A batch is refused if the file of its requests would expire before it, or its owner stores too much. No file stays without the batch
 * for which it was made.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createBatch, createWithFile } from "../../../services/ingress/owned/batches/BatchCreation.ts"
import type { Asked } from "../../../services/ingress/owned/OwnedRoutes.ts"
import { Batches, type Created } from "../../../shared/batches/Batches.ts"
import { Unavailable } from "../../../shared/contract/JobError.ts"
import { type ClientFile, ClientFiles, FileRefused } from "../../../shared/files/ClientFiles.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"

const now = 1_000_000
const day = 24 * 60 * 60_000
const stored = new Unavailable({ retryAfterMs: 1 })

const asked = {
  owner: { id: "owner", secret: Buffer.alloc(0) },
  key: "key",
  headers: {}
} as unknown as Asked

const fileUntil = (expires: number): ClientFile => ({
  id: "file-1",
  purpose: "batch",
  filename: "requests.jsonl",
  bytes: 1,
  lines: 1,
  created: 0,
  expires
})

const about = { endpoint: "/v1/chat/completions", window: "24h", metadata: null, ownsInput: false }

/** The store of batches, and a store of files with this room. */
const stores = (room: Effect.Effect<void, FileRefused>) =>
  Layer.mergeAll(
    Layer.mock(Batches)({ create: () => Effect.fail(stored) }),
    Layer.mock(ClientFiles)({ checkQuota: () => room }),
    Layer.mock(KeyRing)({ find: () => Effect.succeed({ batchConcurrency: 1 } as ApiKey), isLoaded: () => true })
  )

it.effect("a file of requests outlives its batch", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(now)
    const create = yield* createBatch
    const refused = yield* Effect.flip(create(asked, fileUntil(now + day - 1), about))
    assert.strictEqual(refused._tag, "InvalidRequest")
    assert.include(refused.message, "input_file_id")
    assert.strictEqual(yield* Effect.flip(create(asked, fileUntil(now + day), about)), stored)
  }).pipe(Effect.provide(stores(Effect.void))))

const full = new FileRefused({ reason: "quota", message: "too much" })

it.effect("no batch is created while its owner stores more files than the quota", () =>
  Effect.gen(function*() {
    const create = yield* createBatch
    assert.strictEqual(yield* Effect.flip(create(asked, fileUntil(now + day), about)), full)
  }).pipe(Effect.provide(stores(Effect.fail(full)))))

describe("the file of a batch of messages", () => {
  /** Creates a batch for a new file, and returns what deletes the file. `create` waits until `go` is done. */
  const creation = (outcome: (file: string) => Effect.Effect<Created, Unavailable>) =>
    Effect.gen(function*() {
      const deleted: Array<string> = []
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const files = { delete: (_: unknown, id: string) => Effect.sync(() => deleted.push(id) > 0) }
      const fiber = yield* Effect.forkChild(
        createWithFile(files, asked.owner, Effect.succeed(fileUntil(1)), ({ id }) =>
          Deferred.succeed(begun, undefined).pipe(Effect.andThen(Deferred.await(go)), Effect.andThen(outcome(id))))
      )
      yield* Deferred.await(begun)
      return { deleted, fiber, go: Deferred.succeed(go, undefined) }
    })
  const batchOf = (input: string, isRepeated = false) =>
    Effect.succeed({ batch: { request: { input } }, isRepeated } as Created)

  it.effect("stays with the batch if the client disconnects", () =>
    Effect.gen(function*() {
      const { deleted, fiber, go } = yield* creation((file) => batchOf(file))
      fiber.interruptUnsafe()
      yield* go
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(deleted, [])
    }))

  it.effect("is deleted if the batch is refused, even if the client has disconnected", () =>
    Effect.gen(function*() {
      for (const disconnects of [false, true]) {
        const { deleted, fiber, go } = yield* creation(() => Effect.fail(stored))
        if (disconnects) fiber.interruptUnsafe()
        yield* go
        assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
        assert.deepStrictEqual(deleted, ["file-1"])
      }
    }))

  it.effect("is deleted if a batch with another file exists", () =>
    Effect.gen(function*() {
      const { deleted, fiber, go } = yield* creation(() => batchOf("file-0", true))
      yield* go
      assert.isTrue((yield* Fiber.join(fiber)).isRepeated)
      assert.deepStrictEqual(deleted, ["file-1"])
    }))
})
