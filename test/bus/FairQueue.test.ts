/** The queue between tenants is fair, bounded, and loses nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { FairQueue } from "../../shared/bus/FairQueue.ts"

const drain = (queue: FairQueue<string>): ReadonlyArray<string> => {
  const taken: Array<string> = []
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item)
  return taken
}

const filled = (capacity: number, ...items: ReadonlyArray<string>): FairQueue<string> => {
  const queue = new FairQueue<string>(capacity)
  for (const item of items) queue.offer(item.slice(0, 1), item)
  return queue
}

describe("turns", () => {
  it("delays a quiet tenant by one job of a noisy one, not by all of them", () => {
    const queue = filled(2_000, ...Array.from({ length: 1_000 }, (_, index) => `n${index}`), "q0")
    assert.deepStrictEqual([queue.take(), queue.take()], ["n0", "q0"])
  })

  it("go round, each tenant's jobs in their own order", () => {
    const queue = filled(10, "a1", "a2", "a3", "b1", "b2", "c1")
    assert.deepStrictEqual(drain(queue), ["a1", "b1", "c1", "a2", "b2", "a3"])
  })

  it("come after a whole round for a tenant that was just served", () => {
    const queue = filled(10, "a1", "b1", "b2")
    assert.strictEqual(queue.take(), "a1")
    queue.offer("a", "a2")
    assert.deepStrictEqual(drain(queue), ["b1", "a2", "b2"])
  })

  it("pass over a tenant whose last job was removed", () => {
    const queue = filled(10, "a1", "b1", "c1")
    queue.remove("b", "b1")
    assert.deepStrictEqual(drain(queue), ["a1", "c1"])
  })
})

describe("size", () => {
  it("is bounded over all tenants, and room comes back with every job that leaves", () => {
    const queue = filled(2, "a1", "b1")
    assert.isFalse(queue.offer("c", "c1"))
    assert.strictEqual(queue.take(), "a1")
    assert.isTrue(queue.offer("c", "c1"))
    assert.isFalse(queue.offer("a", "a2"))
    queue.remove("b", "b1")
    assert.isTrue(queue.offer("a", "a2"))
    assert.deepStrictEqual(drain(queue), ["c1", "a2"])
    assert.strictEqual(queue.size, 0)
  })

  it("stays where a job to be removed is not there", () => {
    const queue = filled(2, "a1")
    queue.remove("a", "a2")
    queue.remove("b", "a1")
    assert.strictEqual(queue.size, 1)
    queue.remove("a", "a1")
    queue.remove("a", "a1")
    assert.strictEqual(queue.size, 0)
    assert.isUndefined(queue.take())
  })
})

const tenants = ["a", "b", "c", "d"] as const
const operations = Arbitrary.array(
  Arbitrary.schema(Schema.Struct({
    kind: Schema.Literals(["offer", "offer", "offer", "take", "take", "remove"]),
    tenant: Schema.Literals(tenants),
    pick: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 }))
  })),
  { maxLength: 200 }
)

it.prop("keeps its bound, every job and every tenant's turn whatever is done to it", [operations], ([operations]) => {
  const capacity = 12
  const queue = new FairQueue<string>(capacity)
  const lines = new Map<string, Array<string>>(tenants.map((tenant) => [tenant, []]))
  /** How often others were served while a tenant waited without a break. */
  const overtaken = new Map<string, Map<string, number>>()
  const count = () => [...lines.values()].reduce((sum, line) => sum + line.length, 0)
  let next = 0
  for (const { kind, pick, tenant } of operations) {
    const line = lines.get(tenant)!
    if (kind === "offer") {
      const item = `${tenant}${next++}`
      assert.strictEqual(queue.offer(tenant, item), count() < capacity)
      if (count() < capacity) {
        if (line.length === 0) overtaken.set(tenant, new Map())
        line.push(item)
      }
    } else if (kind === "remove") {
      const [item] = line.splice(pick % Math.max(1, line.length), 1)
      queue.remove(tenant, item ?? "none")
    } else {
      const item = queue.take()
      assert.strictEqual(item === undefined, count() === 0)
      if (item === undefined) continue
      const served = item.slice(0, 1)
      assert.strictEqual(lines.get(served)?.shift(), item)
      overtaken.set(served, new Map())
      for (const [waiting, jobs] of lines) {
        if (waiting === served || jobs.length === 0) continue
        const times = (overtaken.get(waiting)?.get(served) ?? 0) + 1
        overtaken.get(waiting)?.set(served, times)
        assert.isAtMost(times, 1, `${served} was served twice while ${waiting} waited`)
      }
    }
    assert.strictEqual(queue.size, count())
  }
}, { arbitrary: { runs: 300, size: 200 } })
