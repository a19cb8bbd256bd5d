/** Which tenants may take another slot of a pool, and which must wait. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import {
  mayTake,
  mayTakeReserved,
  modelShareOf,
  reserveOf,
  roomOf,
  shareOf,
  type TenantDemand
} from "../../../shared/bus/fairness/FairShare.ts"
import { PriorityClass } from "../../../shared/contract/PriorityClass.ts"

interface Tenant extends TenantDemand {
  taken: number
  waiting: number
}

const tenant = (taken: number, waiting: number, more: Partial<Tenant> = {}): Tenant => ({
  weight: 1,
  priority: "standard",
  taken,
  waiting,
  ...more
})

const takenOf = (tenants: ReadonlyArray<Tenant>) => tenants.reduce((sum, { taken }) => sum + taken, 0)

const may = (slots: number, tenants: ReadonlyArray<Tenant>, one: Tenant, ingresses = 1): boolean => {
  const share = shareOf(roomOf(slots), tenants, one.priority)
  return mayTake(one, { slots, taken: takenOf(tenants), share, ingresses })
}

/** Gives slots in turn to waiting tenants that may take one, until none may. */
const fill = (slots: number, tenants: ReadonlyArray<Tenant>): ReadonlyArray<number> => {
  for (let hasGiven = true; hasGiven;) {
    hasGiven = false
    for (const each of tenants) {
      if (each.waiting === 0 || !may(slots, tenants, each)) continue
      each.taken++
      each.waiting--
      hasGiven = true
    }
  }
  return tenants.map(({ taken }) => taken)
}

describe("a tenant", () => {
  // the rule: the reserve is an eighth, rounded down, and at most 32
  const reserves = [[8, 1], [15, 1], [16, 2], [64, 8], [256, 32], [257, 32], [1_280, 32], [25_600, 32]] as const
  it.each(reserves)("alone in a pool of %s slots takes all but %s", (slots, reserve) => {
    assert.strictEqual(reserveOf(slots), reserve)
    assert.deepStrictEqual(fill(slots, [tenant(0, 2 * slots)]), [slots - reserve])
  })

  it("has its share of a large pool as soon as slots become free, although the reserve is small", () => {
    const tenants = [tenant(1_248, 2_000), tenant(0, 2_000)]
    // of the reserve, half: as many as are then free
    assert.deepStrictEqual(fill(1_280, tenants), [1_248, 16])
    for (let ended = 0; ended < 1_248; ended++) {
      tenants[0]!.taken--
      fill(1_280, tenants)
    }
    assert.deepStrictEqual(tenants.map(({ taken }) => taken), [624, 624])
  })

  it("takes a reserved slot only while it holds fewer slots than are free", () => {
    const noisy = tenant(56, 500)
    const newcomers = [tenant(0, 90), tenant(0, 90), tenant(0, 90), tenant(0, 90), tenant(0, 90)]
    for (const [index, slots] of [4, 2, 1, 1, 0].entries()) {
      assert.deepStrictEqual(fill(64, [noisy, ...newcomers.slice(0, index + 1)])[index + 1], slots)
    }
  })

  it("takes no slot beyond its share while others wait, and keeps the slots it holds", () => {
    const tenants = [tenant(56, 500), tenant(0, 500)]
    fill(64, tenants)
    for (let ended = 0; ended < 200; ended++) {
      const [most] = tenants.toSorted((a, b) => b.taken - a.taken)
      most!.taken--
      fill(64, tenants)
    }
    assert.deepStrictEqual(tenants.map(({ taken }) => taken), [28, 28])
  })

  it("gets a share in proportion to its weight", () => {
    assert.deepStrictEqual(fill(64, [tenant(0, 500, { weight: 3 }), tenant(0, 500)]), [42, 14])
  })

  it("gets slots that others do not request", () => {
    assert.deepStrictEqual(fill(64, [tenant(0, 500), tenant(0, 500), tenant(2, 0), tenant(0, 4)]), [25, 25, 2, 4])
  })

  it("is held back by slots of a lower priority class, not by its waiting jobs", () => {
    const batch = tenant(10, 500, { priority: "batch" })
    assert.strictEqual(fill(64, [tenant(0, 500), { ...batch, waiting: 0 }])[0], 46)
    assert.isTrue(may(64, [tenant(40, 500), batch], tenant(40, 500)))
    assert.isFalse(may(64, [tenant(20, 500), { ...batch, taken: 28 }], { ...batch, taken: 28 }))
  })

  it("takes fewer reserved slots per ingress the more ingresses there are", () => {
    const tenants = [tenant(56, 9), tenant(2, 9)]
    assert.isTrue(may(64, tenants, tenants[1]!, 2))
    assert.isFalse(may(64, tenants, tenants[1]!, 3))
  })
})

describe("a share", () => {
  it("leaves slots to those who wanted more recently, as many as are kept, to those with the fewest first", () => {
    const [busy, quiet, rare] = [tenant(50, 90, { fewer: 30 }), tenant(4, 0, { fewer: 6 }), tenant(0, 0, { fewer: 5 })]
    assert.strictEqual(shareOf(56, [busy, quiet, rare], "standard"), 52)
    assert.strictEqual(shareOf(56, [busy, quiet, rare], "standard", 8), 44)
    assert.strictEqual(shareOf(56, [busy, quiet], "standard", 3), 49)
    assert.strictEqual(shareOf(56, [tenant(20, 0), quiet], "standard", 8), Number.POSITIVE_INFINITY)
  })

  it("of a less urgent class counts only its slots", () => {
    const batch = tenant(4, 0, { fewer: 6, priority: "batch" })
    assert.strictEqual(shareOf(56, [tenant(50, 90), batch], "standard", 8), 52)
    assert.strictEqual(shareOf(56, [tenant(50, 90), batch], "batch", 8), 46)
  })

  it("of a model: one that asks for less leaves the rest", () => {
    const model = (taken: number, waiting: number) => ({ taken, waiting })
    assert.strictEqual(modelShareOf(56, [model(56, 90), model(0, 90)]), 28)
    assert.strictEqual(modelShareOf(56, [model(50, 90), model(4, 2)]), 50)
    assert.strictEqual(modelShareOf(56, [model(50, 0), model(4, 2)]), Number.POSITIVE_INFINITY)
  })
})

it("a model takes a reserved slot only while it holds fewer slots than are free", () => {
  const taken = (free: number) => {
    let own = 0
    for (; mayTakeReserved(own, { slots: 64, taken: 64 - free + own, ingresses: 1 }); own++);
    return own
  }
  assert.deepStrictEqual([64, 8, 4, 2, 1, 0].map(taken), [8, 4, 2, 1, 1, 0])
})

const count = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const atLeastOne = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))
const pools = Arbitrary.schema(Schema.Struct({
  slots: atLeastOne(130),
  tenants: Schema.Array(Schema.Struct({
    weight: atLeastOne(5),
    priority: PriorityClass,
    taken: count(20),
    waiting: count(40)
  })).check(Schema.isBetweenLength(1, 12))
}))

it.prop(
  "leaves only reserved slots idle, gives a free slot to newcomers and no tenant more than its share",
  [pools],
  ([
    { slots, tenants: drawn }
  ]) => {
    const tenants = drawn.map((one) => ({ ...one }))
    const taken = takenOf(tenants)
    const waiting = tenants.filter((one) => one.waiting > 0)
    const may1 = waiting.filter((one) => may(slots, tenants, one))
    if (waiting.length > 0 && taken < roomOf(slots)) assert.isAbove(may1.length, 0)
    if (taken >= Math.max(slots, roomOf(slots))) assert.lengthOf(may1, 0)
    if (taken < slots) assert.includeMembers(may1, waiting.filter((one) => one.taken === 0))
    for (const one of may1) {
      const rivals = tenants.filter((other) => other !== one && other.priority === one.priority)
      const weights = rivals.reduce((sum, { weight }) => sum + weight, one.weight)
      // the share is proportional to the weight if every tenant of one class requests more than its share
      const plain = roomOf(slots) * one.weight / weights
      const isPlain = tenants.every((each) => each.priority === one.priority) &&
        tenants.every((each) => each.taken + each.waiting > roomOf(slots) * each.weight / weights)
      if (isPlain) assert.isBelow(one.taken, plain + 1e-6)
    }
    for (const priority of PriorityClass.literals) {
      const share = shareOf(roomOf(slots), tenants, priority)
      if (share === Number.POSITIVE_INFINITY) continue
      const counts = (other: PriorityClass) =>
        PriorityClass.literals.indexOf(other) <= PriorityClass.literals.indexOf(priority)
      const given = tenants.map((one) =>
        Math.min(one.taken + (counts(one.priority) ? one.waiting : 0), share * one.weight)
      )
      assert.closeTo(given.reduce((sum, each) => sum + each, 0), roomOf(slots), 1e-6)
    }
    const before = taken
    const after = fill(slots, tenants).reduce((sum, each) => sum + each, 0)
    assert.isAtMost(after, Math.max(before, slots, roomOf(slots)))
    if (tenants.some((one) => one.waiting > 0)) assert.isAtLeast(after, slots - reserveOf(slots))
  }
)
