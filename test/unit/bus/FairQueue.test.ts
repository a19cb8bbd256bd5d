/** Fairness between tenants, bounds and completeness of the queue. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { type Claimant, FairQueue, type QueueLimits } from "../../../shared/bus/fairness/FairQueue.ts"
import { PriorityClass } from "../../../shared/contract/PriorityClass.ts"

const unbounded: QueueLimits = { items: 10_000, itemsPerTenant: 10_000, ageingMs: 1_000 }

/** The first letter of an item names its tenant. */
const tenantOf = (item: string, more: Partial<Claimant> = {}): Claimant => ({
  tenant: item.slice(0, 1),
  model: "model",
  weight: 1,
  priority: "standard",
  ...more
})

const drain = (queue: FairQueue<string>, now = 0): ReadonlyArray<string> => {
  const taken: Array<string> = []
  for (let item = queue.take(now); item !== undefined; item = queue.take(now)) taken.push(item)
  return taken
}

const queueOf = (limits: Partial<QueueLimits>, ...items: ReadonlyArray<string>): FairQueue<string> => {
  const queue = new FairQueue<string>({ ...unbounded, ...limits })
  for (const item of items) queue.offer(item, tenantOf(item), 0)
  return queue
}

const numbered = (letter: string, count: number) => Array.from({ length: count }, (_, index) => `${letter}${index}`)

describe("a fair queue", () => {
  it("delays a quiet tenant by one job of a noisy tenant, not by all of them", () => {
    const queue = queueOf({}, ...numbered("n", 1_000), "q0")
    assert.deepStrictEqual([queue.take(0), queue.take(0)], ["n0", "q0"])
  })

  it("serves tenants round robin, and each tenant's jobs in order", () => {
    const queue = queueOf({}, "a1", "a2", "a3", "b1", "b2", "c1")
    assert.deepStrictEqual(drain(queue), ["a1", "b1", "c1", "a2", "b2", "a3"])
  })

  it("serves a tenant again only after a full round", () => {
    const queue = queueOf({}, "a1", "b1", "b2")
    assert.strictEqual(queue.take(0), "a1")
    queue.offer("a2", tenantOf("a"), 0)
    assert.deepStrictEqual(drain(queue), ["b1", "a2", "b2"])
  })

  it("serves a tenant no earlier if it sends one job at a time", () => {
    const queue = queueOf({}, ...numbered("n", 100), "o0")
    const taken: Array<string> = []
    for (let turn = 1; turn <= 40; turn++) {
      const item = queue.take(0)!
      taken.push(item.slice(0, 1))
      if (item.startsWith("o")) queue.offer(`o${turn}`, tenantOf("o"), 0)
    }
    assert.strictEqual(taken.join(""), "no".repeat(20))
  })

  it("skips a tenant whose last job was removed", () => {
    const queue = queueOf({}, "a1", "b1", "c1")
    queue.remove("b1")
    assert.deepStrictEqual(drain(queue), ["a1", "c1"])
  })

  it("gives turns in proportion to weights, evenly spread", () => {
    const queue = new FairQueue<string>(unbounded)
    for (const item of numbered("a", 40)) queue.offer(item, tenantOf(item, { weight: 3 }), 0)
    for (const item of numbered("b", 40)) queue.offer(item, tenantOf(item), 0)
    const order = drain(queue).slice(0, 40).map((item) => item.slice(0, 1)).join("")
    assert.strictEqual(order.replaceAll("b", "").length, 30)
    assert.notMatch(order, /aaaaa|bb/)
  })

  it("uses a tenant's latest weight", () => {
    const queue = queueOf({}, ...numbered("a", 20), ...numbered("b", 20))
    queue.offer("a20", tenantOf("a", { weight: 100 }), 0)
    assert.strictEqual(drain(queue).slice(0, 20).filter((item) => item.startsWith("a")).length, 19)
  })
})

describe("priority classes", () => {
  const mixed = () => {
    const queue = new FairQueue<string>(unbounded)
    queue.offer("b1", tenantOf("b", { priority: "batch" }), 0)
    queue.offer("s1", tenantOf("s"), 0)
    queue.offer("i1", tenantOf("i", { priority: "interactive" }), 0)
    queue.offer("i2", tenantOf("i", { priority: "interactive" }), 0)
    return queue
  }

  it("are served in order of priority, not of arrival", () => {
    assert.deepStrictEqual(drain(mixed()), ["i1", "i2", "s1", "b1"])
  })

  it("with jobs older than the ageing time get every eighth turn", () => {
    const queue = new FairQueue<string>(unbounded)
    for (const item of numbered("i", 100)) queue.offer(item, tenantOf(item, { priority: "interactive" }), 0)
    for (const item of numbered("b", 5)) queue.offer(item, tenantOf(item, { priority: "batch" }), 100)
    for (const item of numbered("s", 5)) queue.offer(item, tenantOf(item), 200)
    const turns = (now: number) => Array.from({ length: 16 }, () => queue.take(now)!.slice(0, 1)).join("")
    assert.strictEqual(turns(1_099), "i".repeat(16))
    // the class that has waited longest
    assert.strictEqual(turns(1_200), "iiiiiiibiiiiiiib")
    queue.remove("b2")
    queue.remove("b3")
    queue.remove("b4")
    assert.strictEqual(turns(1_200), "iiiiiiisiiiiiiis")
  })

  it("do not put a tenant's old jobs before new jobs of other tenants in their class", () => {
    const queue = queueOf({}, ...numbered("n", 900))
    assert.strictEqual(queue.take(60_000), "n0")
    queue.offer("q0", tenantOf("q"), 60_000)
    assert.include([queue.take(60_000), queue.take(60_000)], "q0")
  })
})

describe("the size of a fair queue", () => {
  it("is bounded over all tenants; each job that leaves makes room", () => {
    const queue = queueOf({ items: 2 }, "a1", "b1")
    assert.isFalse(queue.offer("c1", tenantOf("c"), 0))
    assert.strictEqual(queue.take(0), "a1")
    assert.isTrue(queue.offer("c1", tenantOf("c"), 0))
    assert.isFalse(queue.offer("a2", tenantOf("a"), 0))
    queue.remove("b1")
    assert.isTrue(queue.offer("a2", tenantOf("a"), 0))
    assert.deepStrictEqual(drain(queue), ["c1", "a2"])
    assert.strictEqual(queue.size, 0)
  })

  it("is bounded per tenant, over all classes", () => {
    const queue = queueOf({ itemsPerTenant: 2 }, "a1")
    assert.isTrue(queue.offer("a2", tenantOf("a", { priority: "batch" }), 0))
    assert.isFalse(queue.offer("a3", tenantOf("a", { priority: "interactive" }), 0))
    assert.isTrue(queue.offer("b1", tenantOf("b"), 0))
    assert.strictEqual(queue.take(0), "a1")
    assert.isTrue(queue.offer("a3", tenantOf("a"), 0))
  })

  it("does not change if a job to remove is not in the queue", () => {
    const queue = queueOf({ items: 2 }, "a1")
    queue.remove("a2")
    assert.strictEqual(queue.size, 1)
    queue.remove("a1")
    queue.remove("a1")
    assert.strictEqual(queue.size, 0)
    assert.isUndefined(queue.take(0))
  })
})

const tenants = ["a", "b", "c", "d"] as const
const operations = Arbitrary.array(
  Arbitrary.schema(Schema.Struct({
    kind: Schema.Literals(["offer", "offer", "offer", "take", "take", "remove", "wait"]),
    model: Schema.Literals(["m", "n"]),
    tenant: Schema.Literals(tenants),
    priority: PriorityClass,
    weight: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
    pick: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 }))
  })),
  { maxLength: 200 }
)

it.prop(
  "a fair queue keeps its bounds and every job, and never predicts more turns than it holds",
  [operations],
  ([operations]) => {
    const limits = { items: 12, itemsPerTenant: 7, ageingMs: 1_000 }
    const queue = new FairQueue<string>(limits)
    const held = new Map<string, string>()
    const own = (tenant: string) => [...held.values()].filter((holder) => holder === tenant).length
    let next = 0
    let now = 0
    for (const { kind, model, pick, priority, tenant, weight } of operations) {
      if (kind === "wait") now += pick
      else if (kind === "offer") {
        const item = `${tenant}${next++}`
        const hasRoom = held.size < limits.items && own(tenant) < limits.itemsPerTenant
        assert.strictEqual(queue.offer(item, { tenant, model, priority, weight }, now), hasRoom)
        if (hasRoom) held.set(item, tenant)
      } else if (kind === "remove") {
        const item = [...held.keys()][pick % Math.max(1, held.size)] ?? "none"
        queue.remove(item)
        held.delete(item)
      } else {
        const item = queue.take(now)
        assert.strictEqual(item === undefined, held.size === 0)
        if (item !== undefined) assert.isTrue(held.delete(item))
      }
      assert.strictEqual(queue.size, held.size)
    }
    const claimant = { tenant: "d", model: "m", weight: 2, priority: "standard" } as const
    const ahead = queue.ahead(claimant)
    assert.isAtMost(ahead, queue.size)
    if (held.size < limits.items && own("d") < limits.itemsPerTenant) {
      queue.offer("last", claimant, now)
      const aged = drain(queue, now)
      assert.sameMembers([...aged], [...held.keys(), "last"])
    }
  },
  { arbitrary: { runs: 300, size: 200 } }
)

describe("a tenant's line", () => {
  const of = (model: string) => tenantOf("a", { model })

  /** A line with three jobs for one model, then two for another. */
  const lineOf = () => {
    const queue = queueOf({})
    for (const item of ["s1", "s2", "s3"]) queue.offer(item, of("slow"), 0)
    for (const item of ["q1", "q2"]) queue.offer(item, of("quick"), 0)
    return queue
  }

  it("serves its models in turn, and each model's jobs in order", () => {
    assert.deepStrictEqual(drain(lineOf()), ["s1", "q1", "s2", "q2", "s3"])
  })

  it("passes over a model that may not go", () => {
    const queue = lineOf()
    const isQuick = ({ model }: Claimant) => model === "quick"
    assert.deepStrictEqual([1, 2, 3].map(() => queue.take(0, isQuick)), ["q1", "q2", undefined])
    assert.deepStrictEqual(drain(queue), ["s1", "s2", "s3"])
  })

  it("has fewer jobs ahead of a model that waits for fewer", () => {
    const queue = lineOf()
    assert.strictEqual(queue.ahead(of("quick")), 5)
    assert.strictEqual(queue.ahead(of("other")), 2)
  })
})

describe("the predicted number of turns ahead", () => {
  it("counts turns of other tenants, not all their jobs", () => {
    const queue = queueOf({}, ...numbered("n", 900))
    assert.strictEqual(queue.ahead(tenantOf("q")), 1)
    assert.strictEqual(queue.ahead(tenantOf("n")), 900)
    queue.offer("q0", tenantOf("q"), 0)
    // two turns of the noisy tenant, and the quiet tenant's own first job
    assert.strictEqual(queue.ahead(tenantOf("q")), 3)
  })

  it("matches the actual order", () => {
    const queue = new FairQueue<string>(unbounded)
    for (const item of numbered("a", 30)) queue.offer(item, tenantOf(item, { weight: 3 }), 0)
    for (const item of [...numbered("b", 30), ...numbered("c", 4)]) queue.offer(item, tenantOf(item), 0)
    queue.offer("i0", tenantOf("i", { priority: "interactive" }), 0)
    for (let turn = 0; turn < 7; turn++) queue.take(0)
    const ahead = queue.ahead(tenantOf("c"))
    queue.offer("last", tenantOf("c"), 0)
    // tenants with the same turn may be served in either order
    assert.closeTo(drain(queue).indexOf("last"), ahead, 2)
  })
})
