/** How ingresses divide a pool's slots, knowing each other only by announcements. */
import { assert, describe, it } from "@effect/vitest"
import { decodeOccupancy, decodeSlots, encodeOccupancy, encodeSlots } from "../../../shared/bus/fairness/Occupancy.ts"
import { PoolOccupancy } from "../../../shared/bus/fairness/PoolOccupancy.ts"

const claimant = (tenant: string, model = "model") => ({ tenant, model, weight: 1, priority: "standard" }) as const

/** A pool as seen by `ingresses` ingresses, each of which knows of `slots` slots. */
const pools = (ingresses: number, slots: number): ReadonlyArray<PoolOccupancy> =>
  Array.from({ length: ingresses }, () => {
    const pool = new PoolOccupancy()
    pool.setWorker("worker", slots)
    pool.divide(ingresses)
    return pool
  })

/** Delivers every ingress's announcement to every other. */
const exchange = (all: ReadonlyArray<PoolOccupancy>): void => {
  for (const [index, one] of all.entries()) {
    for (const other of all) if (other !== one) other.setPeer(`${index}`, one.announced())
  }
  for (const one of all) one.divide(all.length)
}

/** Queues `jobs` jobs of a tenant and dispatches those that may start. Returns how many started. */
const burst = (pool: PoolOccupancy, tenant: string, jobs: number): number => {
  for (let job = 0; job < jobs; job++) pool.entered(claimant(tenant))
  return go(pool, tenant, jobs)
}

const go = (pool: PoolOccupancy, tenant: string, most: number): number => {
  let gone = 0
  for (; gone < most && pool.mayTake(claimant(tenant), 0); gone++) pool.took(claimant(tenant))
  return gone
}

describe("several ingresses", () => {
  it("give a burst that reaches all of them no more slots than one ingress would", () => {
    for (const count of [1, 2, 3, 7]) {
      const all = pools(count, 64)
      let taken = 0
      for (const pool of all) taken += burst(pool, "noisy", 90)
      for (let round = 0; round < 20; round++) {
        exchange(all)
        for (const pool of all) taken += go(pool, "noisy", 90)
        assert.isAtMost(taken, 56 + count)
      }
      assert.isAtLeast(taken, 56)
      assert.isAbove(burst(all[0]!, "quiet", 1), 0)
    }
  })

  it("give all slots to the ingress that has requests", () => {
    const all = pools(3, 64)
    let taken = burst(all[0]!, "noisy", 90)
    assert.strictEqual(taken, 19)
    for (let round = 0; round < 20; round++) {
      exchange(all)
      taken += go(all[0]!, "noisy", 90)
    }
    assert.strictEqual(taken, 56)
  })

  it("share slots between tenants of different ingresses", () => {
    const [one, other] = pools(2, 64)
    burst(one!, "a", 500)
    for (let round = 0; round < 20; round++) {
      exchange([one!, other!])
      go(one!, "a", 500)
    }
    burst(other!, "b", 500)
    exchange([one!, other!])
    for (let job = 0; job < 56; job++) {
      one!.freed(claimant("a"))
      go(one!, "a", 500)
      go(other!, "b", 500)
      exchange([one!, other!])
    }
    const of = (pool: PoolOccupancy) => pool.announced().map(({ taken }) => taken)
    assert.deepStrictEqual([...of(one!), ...of(other!)], [28, 28])
  })

  it("ignore an ingress that has ended", () => {
    const [one, other] = pools(2, 64)
    burst(one!, "a", 500)
    exchange([one!, other!])
    other!.setPeer("0", [])
    other!.divide(1)
    // what its tenant wanted is forgotten within ten seconds
    for (const now of [5_000, 10_000]) other!.age(now)
    assert.strictEqual(burst(other!, "b", 500), 56)
  })
})

describe("a pool", () => {
  it("holds no tenant back while its number of slots is unknown", () => {
    const pool = new PoolOccupancy()
    assert.strictEqual(burst(pool, "noisy", 500), 500)
    pool.setWorker("worker", 64)
    assert.isFalse(pool.mayTake(claimant("noisy"), 0))
    pool.setWorker("worker", 0)
    assert.isTrue(pool.mayTake(claimant("noisy"), 0))
  })

  it("holds no tenant back while a worker that announces no slots takes jobs", () => {
    const [pool] = pools(1, 64)
    burst(pool!, "noisy", 500)
    assert.isFalse(pool!.mayTake(claimant("noisy"), 0))
    pool!.claimedBy("older", 2, 0)
    assert.isTrue(pool!.mayTake(claimant("noisy"), 0))
    pool!.tick(59_000, 1_000, true)
    assert.isUndefined(pool!.slots)
    pool!.tick(61_000, 2_000, true)
    assert.strictEqual(pool!.slots, 64)
    pool!.claimedBy("older", 2, 61_000)
    pool!.setWorker("older", 8)
    assert.strictEqual(pool!.slots, 72)
  })

  it("without a reserve gives all slots to a tenant that is alone, and its share once another arrives", () => {
    const [pool] = pools(1, 4)
    assert.strictEqual(burst(pool!, "noisy", 9), 9)
    pool!.entered(claimant("quiet"))
    assert.isFalse(pool!.mayTake(claimant("noisy"), 0))
  })
})

it("shares are exact for few tenants, and at most a moment old for many", () => {
  for (const tenants of [10, 1_000]) {
    const [pool] = pools(1, 2_400)
    assert.strictEqual(burst(pool!, "noisy", 5_000), 2_368)
    for (let tenant = 0; tenant < tenants; tenant++) {
      for (let job = 0; job < 300; job++) pool!.entered(claimant(`tenant ${tenant}`))
    }
    for (let job = 0; job < 1_000; job++) pool!.freed(claimant("noisy"))
    const now = 100
    assert.isFalse(pool!.mayTake(claimant("noisy"), now), `${tenants}`)
    assert.isTrue(pool!.mayTake(claimant("tenant 0"), now))
  }
})

it("a tenant's waiting time follows from the pace at which its own jobs end", () => {
  const [pool] = pools(1, 64)
  burst(pool!, "noisy", 90)
  assert.isUndefined(pool!.waitMs(claimant("noisy")))
  for (let tick = 1; tick <= 20; tick++) {
    pool!.freed(claimant("noisy"))
    pool!.took(claimant("noisy"))
    pool!.tick(500 * tick, 500, true)
  }
  // 14 jobs wait, and two are served each second
  assert.strictEqual(pool!.waitMs(claimant("noisy")), 7_000)
  assert.strictEqual(pool!.waitMs(claimant("quiet")), 0)
})

describe("a tenant's models", () => {
  const [slow, quick] = [claimant("a", "slow"), claimant("a", "quick")]

  /** A pool whose slots, except for the reserve, one model of a tenant has taken. */
  const fullPool = (): PoolOccupancy => {
    const [pool] = pools(1, 64)
    for (let job = 0; job < 90; job++) pool!.entered(slow)
    for (let job = 0; job < 56; job++) pool!.took(slow)
    assert.isFalse(pool!.mayTake(slow, 0))
    return pool!
  }

  const take = (pool: PoolOccupancy, one: typeof slow): number => {
    let taken = 0
    for (; taken < 100 && pool.mayTake(one, 0); taken++) pool.took(one)
    return taken
  }

  it("share its slots: one finds a few in the reserve, and gets those that become free up to its share", () => {
    const pool = fullPool()
    for (let job = 0; job < 90; job++) pool.entered(quick)
    assert.strictEqual(take(pool, quick), 4)
    for (let job = 0; job < 28; job++) {
      pool.freed(slow)
      assert.isFalse(pool.mayTake(slow, 0))
      take(pool, quick)
    }
    assert.deepStrictEqual(pool.announced()[0]?.models.map(({ taken }) => taken), [28, 28])
  })

  it("leave the reserve to other tenants that wait", () => {
    const pool = fullPool()
    pool.entered(quick)
    pool.entered(claimant("b"))
    assert.isFalse(pool.mayTake(quick, 0))
    assert.isTrue(pool.mayTake(claimant("b"), 0))
  })

  it("keep slots for the one that wanted more some seconds ago, which others get later", () => {
    const [pool] = pools(1, 64)
    for (let job = 0; job < 5; job++) {
      pool!.entered(quick)
      pool!.took(quick)
    }
    for (let job = 0; job < 5; job++) pool!.freed(quick)
    for (let job = 0; job < 90; job++) pool!.entered(slow)
    assert.strictEqual(take(pool!, slow), 51)
    for (const now of [5_000, 10_000]) pool!.age(now)
    assert.strictEqual(take(pool!, slow), 5)
  })

  it("each have their own waiting time", () => {
    const pool = fullPool()
    for (let job = 0; job < 10; job++) pool.entered(quick)
    take(pool, quick)
    // a slow request ends every second, and five quick ones
    for (let tick = 1; tick <= 100; tick++) {
      if (tick % 5 === 0) {
        pool.freed(slow)
        pool.took(slow)
      }
      pool.freed(quick)
      pool.took(quick)
      pool.entered(quick)
      pool.tick(200 * tick, 200, true)
    }
    assert.strictEqual(pool.waitMs(quick), 1_200)
    assert.strictEqual(pool.waitMs(slow), 14_000)
  })

  it("are known to other ingresses", () => {
    const [one, other] = pools(2, 64)
    for (let job = 0; job < 90; job++) one!.entered(slow)
    for (let round = 0; round < 20; round++) {
      exchange([one!, other!])
      take(one!, slow)
    }
    for (let job = 0; job < 90; job++) other!.entered(quick)
    exchange([one!, other!])
    for (let round = 0; round < 40; round++) {
      if (round < 28) one!.freed(slow)
      take(one!, slow)
      take(other!, quick)
      exchange([one!, other!])
    }
    const taken = [one!, other!].map((pool) => pool.announced()[0]?.taken)
    assert.deepStrictEqual(taken, [28, 28])
  })
})

it("a job that waits for a provider has no slot, and takes one again even if none is free", () => {
  const [pool] = pools(1, 64)
  assert.strictEqual(burst(pool!, "a", 86), 56)
  for (let job = 0; job < 30; job++) pool!.freed(claimant("a"))
  assert.strictEqual(go(pool!, "a", 30), 30)
  for (let job = 0; job < 30; job++) pool!.retook(claimant("a"))
  assert.strictEqual(pool!.announced()[0]?.taken, 86)
  pool!.entered(claimant("b"))
  assert.isFalse(pool!.mayTake(claimant("b"), 0))
})

describe("an occupancy announcement", () => {
  const tenants = [{
    tenant: "key_a",
    weight: 2,
    priority: "batch",
    taken: 3,
    waiting: 4,
    models: [{ model: "one", taken: 3, waiting: 0 }, { model: "two", taken: 0, waiting: 4 }]
  }] as const

  it("names at most a thousand tenants and sums up the others", () => {
    const pool = new PoolOccupancy()
    for (let tenant = 0; tenant < 1_500; tenant++) pool.entered(claimant(`tenant ${tenant}`))
    const announced = pool.announced()
    assert.lengthOf(announced, 1_001)
    assert.deepInclude(announced.at(-1), { waiting: 500, taken: 0, weight: 500 })
  })

  it("decodes to what was encoded", () => {
    const pools = [{ workload: "chat", pool: "default", tenants }] as const
    assert.deepStrictEqual(decodeOccupancy(Buffer.from(encodeOccupancy(pools)).toString()), pools)
    assert.strictEqual(decodeSlots(Buffer.from(encodeSlots(64)).toString()), 64)
  })

  it("is ignored if it cannot be decoded", () => {
    for (
      const text of ["", "{}", "[1]", `[["chat","default",[["key_a",0,"batch",[["m",3,4]]]]]]`, `[["chat","a.b",[]]]`]
    ) {
      assert.isUndefined(decodeOccupancy(text), text)
    }
    for (const text of ["", "-1", "1.5", "many", "1e9"]) assert.isUndefined(decodeSlots(text), text)
  })
})

describe("the version of the protocol", () => {
  it("is the newest once every announced worker reads it, and falls while one does not", () => {
    const pool = new PoolOccupancy()
    assert.strictEqual(pool.version, 2)
    pool.setWorker("new", 4, 3)
    assert.strictEqual(pool.version, 3)
    pool.setWorker("old", 4)
    assert.strictEqual(pool.version, 2)
    pool.setWorker("newer", 4, 4)
    pool.setWorker("old", 0)
    assert.strictEqual(pool.version, 3)
    pool.setWorker("new", 4, 2)
    assert.strictEqual(pool.version, 2)
    pool.setWorker("new", 0)
    assert.strictEqual(pool.version, 3)
  })

  it("stays while all workers are away", () => {
    const pool = new PoolOccupancy()
    pool.setWorker("new", 4, 3)
    pool.setWorker("new", 0)
    assert.strictEqual(pool.version, 3)
    pool.setWorker("old", 4)
    pool.setWorker("old", 0)
    assert.strictEqual(pool.version, 2)
  })

  it("is the oldest while a worker takes jobs without an announcement", () => {
    const pool = new PoolOccupancy()
    pool.setWorker("new", 4, 3)
    pool.claimedBy("old", 2, 0)
    assert.strictEqual(pool.version, 2)
    pool.setWorker("old", 4, 3)
    assert.strictEqual(pool.version, 3)
  })

  it("is that of a job that a worker takes without an announcement", () => {
    const pool = new PoolOccupancy()
    pool.setWorker("new", 4, 3)
    pool.claimedBy("reconnected", 3, 0)
    assert.strictEqual(pool.version, 3)
    pool.claimedBy("old", 2, 0)
    assert.strictEqual(pool.version, 2)
  })

  it("stays while a worker that takes no more jobs claims one that was on its way", () => {
    const pool = new PoolOccupancy()
    pool.setWorker("new", 4, 3)
    pool.setWorker("leaving", 4, 3)
    pool.setWorker("leaving", 0)
    pool.claimedBy("leaving", 2, 0)
    assert.strictEqual(pool.version, 3)
    assert.strictEqual(pool.slots, 4)
  })
})
