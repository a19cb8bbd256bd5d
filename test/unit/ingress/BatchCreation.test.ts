/** A batch is refused if the file of its requests would expire before it, or its owner stores too much. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createBatch } from "../../../services/ingress/owned/batches/BatchCreation.ts"
import type { Asked } from "../../../services/ingress/owned/OwnedRoutes.ts"
import { Batches } from "../../../shared/batches/Batches.ts"
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
