/** Bodies that wait for memory: in which order they go on, that one always can, and how long they wait. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Readable } from "node:stream"
import { BodyWaits } from "../../../services/ingress/body/BodyMemory.ts"
import type { UploadBudget } from "../../../services/ingress/body/UploadBudget.ts"
import { read } from "../../../services/ingress/request/IncomingBody.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

const kibibyte = 1024

/** A body of this size that has been begun, and whether it has ended. */
class Sent {
  readonly source = new Readable({ read: () => undefined })
  readonly budget: UploadBudget
  readonly stop: () => void
  outcome: "complete" | "refused" | undefined

  constructor(memory: BodyWaits, tenant: string, bytes: number) {
    this.budget = memory.upload(tenant, this.source)
    this.stop = read(this.source, { bytes, codings: [] }, this.budget, (body) => {
      this.outcome = body._tag === "Success" ? "complete" : "refused"
    })
  }

  send(bytes: number): this {
    this.source.push(Buffer.alloc(bytes))
    return this
  }

  end(bytes: number): this {
    this.send(bytes).source.push(null)
    return this
  }
}

/** Until the streams have passed on what was sent. */
const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

const outcomesOf = (bodies: ReadonlyArray<Sent>) => bodies.map(({ outcome = "waits" }) => outcome)

const size = 100 * kibibyte

describe("ten bodies of which nine tenths have come, and no memory for the rest", () => {
  // each budget has room for nine tenths of each body, and for no more: a tenant's half, or the quarter that is kept, is reached
  const cases = [
    { name: "of one tenant", tenantOf: () => "a", budgetBytes: 20 * 90 * kibibyte },
    { name: "of two tenants", tenantOf: (body: number) => body % 2 === 0 ? "a" : "b", budgetBytes: 1_200 * kibibyte },
    { name: "of ten tenants", tenantOf: (body: number) => `${body}`, budgetBytes: 1_200 * kibibyte },
    { name: "of one tenant, unannounced", tenantOf: () => "a", budgetBytes: 20 * 90 * kibibyte, announced: 0 },
    {
      name: "of ten tenants, unannounced",
      tenantOf: (body: number) => `${body}`,
      budgetBytes: 1_200 * kibibyte,
      announced: 0
    }
  ]
  for (const { announced = size, budgetBytes, name, tenantOf } of cases) {
    it.effect(`${name}: all complete, each when one before it has ended`, () =>
      Effect.gen(function*() {
        const memory = new BodyWaits(new TenantBudget(budgetBytes), 30_000)
        const bodies = Array.from({ length: 10 }, (_, index) => new Sent(memory, tenantOf(index), announced))
        for (const body of bodies) body.send(90 * kibibyte)
        yield* settled
        assert.notInclude(bodies.map(({ source }) => source.isPaused()), true)
        for (const body of bodies) body.end(10 * kibibyte)
        for (let round = 0; round < 10; round++) {
          yield* settled
          const waiting = bodies.filter(({ outcome }) => outcome === undefined)
          const complete = bodies.filter(({ outcome }) => outcome === "complete")
          assert.notInclude(outcomesOf(bodies), "refused")
          if (waiting.length === 0) break
          assert.isNotEmpty(complete, "one can go on")
          // their jobs end
          for (const body of complete) body.stop()
        }
        assert.deepStrictEqual(new Set(outcomesOf(bodies)), new Set(["complete"]))
      }))
  }
})

describe("a body that exceeds the budget", () => {
  it.effect("goes on although an older one of its tenant waits for its end", () =>
    Effect.gen(function*() {
      const memory = new BodyWaits(new TenantBudget(16 * kibibyte), 2_000)
      const older = new Sent(memory, "a", 12 * kibibyte).send(6 * kibibyte)
      yield* settled
      const beyond = new Sent(memory, "a", 12 * kibibyte).send(4 * kibibyte)
      yield* settled
      assert.isFalse(beyond.source.isPaused(), "it has exceeded the budget")
      older.end(6 * kibibyte)
      yield* settled
      beyond.end(4 * kibibyte)
      yield* settled
      assert.deepStrictEqual(outcomesOf([older, beyond]), ["waits", "complete"])
      beyond.stop()
      yield* settled
      assert.deepStrictEqual(outcomesOf([older, beyond]), ["complete", "complete"])
    }))
})

describe("a body that waits for memory", () => {
  /** A budget of which another tenant holds a half, and the tenant `a` what is left for it. */
  const full = () => {
    const bodies = new TenantBudget(16 * kibibyte)
    const memory = new BodyWaits(bodies, 2_000)
    assert.isTrue(bodies.reserve("other", 8 * kibibyte))
    assert.isTrue(bodies.reserve("a", 4 * kibibyte))
    // someone has exceeded the budget already
    assert.isTrue(bodies.overdraw("other", 8 * kibibyte, 8 * kibibyte))
    return { bodies, memory }
  }

  it.effect("is not read meanwhile, and goes on when memory is released", () =>
    Effect.gen(function*() {
      const { bodies, memory } = full()
      const body = new Sent(memory, "a", 3 * kibibyte).send(2 * kibibyte)
      yield* settled
      assert.isTrue(body.source.isPaused())
      body.end(kibibyte)
      yield* settled
      assert.isUndefined(body.outcome)
      bodies.release("a", 4 * kibibyte)
      yield* settled
      assert.strictEqual(body.outcome, "complete")
    }))

  it.effect("is refused after its patience, counted in seconds, and holds nothing then", () =>
    Effect.gen(function*() {
      const { bodies, memory } = full()
      const body = new Sent(memory, "a", 3 * kibibyte).send(2 * kibibyte)
      yield* settled
      for (let seconds = 0; seconds < 2; seconds++) memory.tick()
      yield* settled
      assert.isUndefined(body.outcome)
      memory.tick()
      assert.strictEqual(body.outcome, "refused")
      bodies.release("a", 4 * kibibyte)
      assert.isTrue(bodies.reserve("a", 4 * kibibyte))
    }))

  it.effect("is not overtaken by a younger one of its tenant, though that needs less", () =>
    Effect.gen(function*() {
      const { bodies, memory } = full()
      const older = new Sent(memory, "a", 4 * kibibyte)
      const younger = new Sent(memory, "a", 4 * kibibyte).send(kibibyte)
      yield* settled
      older.send(3 * kibibyte)
      yield* settled
      const arePaused = () => [older, younger].map(({ source }) => source.isPaused())
      bodies.release("a", kibibyte)
      yield* settled
      assert.deepStrictEqual(arePaused(), [true, true])
      bodies.release("a", 3 * kibibyte)
      yield* settled
      assert.deepStrictEqual(arePaused(), [false, true])
    }))

  it.effect("no longer waits once its client has left", () =>
    Effect.gen(function*() {
      const { bodies, memory } = full()
      const body = new Sent(memory, "a", 3 * kibibyte).send(2 * kibibyte)
      yield* settled
      body.stop()
      bodies.release("a", 4 * kibibyte)
      yield* settled
      assert.isUndefined(body.outcome)
      assert.isTrue(bodies.reserve("a", 4 * kibibyte))
    }))

  it.effect("that is read as a stream waits in the same way", () =>
    Effect.gen(function*() {
      const { bodies, memory } = full()
      const waiting = yield* Effect.forkChild(memory.upload("a").wait(2 * kibibyte))
      yield* settled
      assert.isUndefined(waiting.pollUnsafe())
      bodies.release("a", 4 * kibibyte)
      yield* settled
      assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
    }))
})
