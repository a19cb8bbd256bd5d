/** How many jobs a pool publishes to its stream, and the retry times it gives to jobs it rejects. */
import { assert, describe, it } from "@effect/vitest"
import { DrainRate } from "../../../shared/bus/fairness/DrainRate.ts"
import { JobPool } from "../../../shared/bus/ingress/JobPool.ts"
import { PoolOccupancy } from "../../../shared/bus/fairness/PoolOccupancy.ts"
import { Window } from "../../../shared/bus/ingress/Window.ts"
import { QueueFull, QueueTimeout } from "../../../shared/contract/JobError.ts"

describe("the publish window", () => {
  /**
   * A stream that delivers `perSecond` jobs, one after another, from a queue that is never empty. Returns the number of
   * undelivered jobs at each delivery.
   */
  const replay = (window: Window, perSecond: number, claims: number): ReadonlyArray<number> => {
    let unclaimed = window.size
    return Array.from({ length: claims }, () => {
      unclaimed--
      window.claimed(unclaimed, unclaimed, perSecond)
      unclaimed = Math.max(unclaimed, window.size)
      return unclaimed
    })
  }

  it("settles at what workers take within a moment", () => {
    for (const [perSecond, most] of [[1, 3], [100, 4], [400, 11], [1_000, 23]] as const) {
      const lay = replay(new Window(64), perSecond, 500).slice(100)
      assert.isAtMost(Math.max(...lay), most)
      assert.isAtLeast(Math.min(...lay), 2)
    }
  })

  it("opens fully if workers take every job at once", () => {
    const window = new Window(64)
    for (let claim = 0; claim < 56; claim++) window.claimed(0, window.size - 1, 10_000)
    assert.strictEqual(window.size, 64)
    window.claimed(0, 63, 10_000)
    assert.strictEqual(window.size, 64)
  })

  it("does not open if no job waits in the queue", () => {
    const window = new Window(64)
    const { size } = window
    for (let claim = 0; claim < 100; claim++) window.claimed(0, 0, 100)
    assert.strictEqual(window.size, size)
  })

  it("closes if the stream is full of other ingresses' jobs, but not completely", () => {
    const window = new Window(64)
    for (const unclaimed of [7, 5, 1, 0]) {
      window.claimed(500, unclaimed, 100)
      assert.strictEqual(window.size, 2)
    }
    assert.strictEqual(new Window(1).size, 1)
  })
})

describe("the drain rate", () => {
  const ticks = (rate: DrainRate, from: number, count: number, perTick: number, wasWaiting = true) => {
    for (let tick = 1; tick <= count; tick++) {
      for (let taken = 0; taken < perTick; taken++) rate.add()
      rate.tick(from + 200 * tick, 200, wasWaiting, true)
    }
  }

  it("is known after one second and adapts within ten", () => {
    const rate = new DrainRate()
    ticks(rate, 0, 4, 10)
    assert.isUndefined(rate.perSecond)
    ticks(rate, 800, 1, 10)
    assert.strictEqual(rate.perSecond, 50)
    ticks(rate, 1_000, 50, 2)
    assert.strictEqual(rate.perSecond, 10)
    ticks(rate, 11_000, 50, 0)
    assert.isUndefined(rate.perSecond)
  })

  it("ignores an empty queue, and expires after a minute in which the queue was always empty", () => {
    const rate = new DrainRate()
    ticks(rate, 0, 10, 10)
    ticks(rate, 2_000, 100, 1, false)
    assert.strictEqual(rate.perSecond, 50)
    ticks(rate, 22_000, 201, 1, false)
    assert.isUndefined(rate.perSecond)
  })
})

describe("the drain rate of a queue that NATS does not serve all the time", () => {
  const tick = (rate: DrainRate, count: number, isServed: boolean) => {
    for (let taken = 0; taken < count; taken++) rate.add()
    rate.tick(0, 500, true, isServed)
  }

  it("counts time once the queue is known to have been served until then", () => {
    const rate = new DrainRate()
    tick(rate, 10, true)
    tick(rate, 10, true)
    tick(rate, 0, false)
    tick(rate, 0, false)
    assert.strictEqual(rate.perSecond, 20)
    tick(rate, 0, true)
    assert.strictEqual(rate.perSecond, 8)
  })

  it("leaves out an interruption from its beginning", () => {
    const rate = new DrainRate()
    tick(rate, 10, true)
    tick(rate, 0, false)
    rate.interrupt()
    tick(rate, 10, true)
    assert.strictEqual(rate.perSecond, 20)
  })
})

describe("a job that cannot be served in time", () => {
  const limits = { items: 100, itemsPerTenant: 90, ageingMs: 1_000, window: 1 }
  const claimant = (tenant: string, model = "model") => ({ tenant, model, weight: 1, priority: "standard" }) as const

  /** A pool that drains 50 jobs a second, in which `count` jobs of one tenant wait. */
  const drainingPool = (count: number, occupancy = new PoolOccupancy()): JobPool<string> => {
    const pool = new JobPool<string>(limits, occupancy)
    for (let job = 0; job < count; job++) assert.isUndefined(pool.enter(`n${job}`, claimant("n"), 60_000, 0))
    for (let tick = 1; tick <= 5; tick++) {
      for (let taken = 0; taken < 10; taken++) pool.claimed("worker", 3, 0, 200 * tick)
      pool.tick(200 * tick, 200)
    }
    return pool
  }

  it("is rejected with the time until the jobs ahead of it are served", () => {
    const pool = drainingPool(90)
    const refused = pool.enter("n90", claimant("n"), 60_000, 1_000)
    assert.instanceOf(refused, QueueFull)
    assert.strictEqual(refused.retryAfterMs, 1_800)
    for (let job = 0; job < 10; job++) assert.isUndefined(pool.enter(`q${job}`, claimant("q"), 60_000, 1_000))
    const last = pool.enter("r0", claimant("r"), 60_000, 1_000)
    assert.instanceOf(last, QueueFull)
    // one job of each tenant ahead of it
    assert.strictEqual(last.retryAfterMs, 40)
  })

  it("is rejected at once if its tenant's own queue takes most of its deadline", () => {
    const pool = drainingPool(80)
    const refused = pool.enter("n80", claimant("n"), 1_900, 1_000)
    assert.instanceOf(refused, QueueTimeout)
    assert.strictEqual(refused.retryAfterMs, 1_600)
    assert.isUndefined(pool.enter("n80", claimant("n"), 2_000, 1_000))
    assert.isUndefined(pool.enter("q0", claimant("q"), 100, 1_000))
  })

  it("is queued while JetStream does not answer, however long its tenant's queue seems to take", () => {
    const pool = drainingPool(80)
    pool.stalled(1_000)
    assert.isUndefined(pool.enter("n80", claimant("n"), 1_900, 1_000))
    // workers get no jobs meanwhile, however fast they are
    for (let tick = 1; tick <= 14; tick++) pool.tick(1_000 + 200 * tick, 200)
    const [before, after] = [pool.retryAfterMs(claimant("n")), drainingPool(81).retryAfterMs(claimant("n"))]
    assert.strictEqual(before, after)
    pool.claimed("worker", 3, 0, 3_900)
    assert.instanceOf(pool.enter("n81", claimant("n"), 1_900, 3_900), QueueTimeout)
  })

  it("is queued after JetStream has served a few jobs between two stalls, which do not show how fast workers are", () => {
    const occupancy = new PoolOccupancy()
    occupancy.setWorker("worker", 4, 3)
    const pool = new JobPool<string>(limits, occupancy)
    for (let job = 0; job < 80; job++) assert.isUndefined(pool.enter(`n${job}`, claimant("n"), 60_000, 0))
    pool.published()
    let now = 0
    const ticks = (count: number) => {
      for (let tick = 0; tick < count; tick++) pool.tick(now += 200, 200)
    }
    ticks(4)
    pool.stalled(now)
    ticks(10)
    for (let claim = 0; claim < 8; claim++) pool.claimed("worker", 3, 0, now)
    ticks(4)
    assert.isUndefined(pool.enter("n80", claimant("n"), 10_000, now))
    pool.stalled(now)
    ticks(20)
    // when it answers, it serves no job for a while: now the workers are slow
    for (let tick = 0; tick < 50; tick++) {
      pool.served()
      ticks(1)
    }
    for (let claim = 0; claim < 3; claim++) pool.claimed("worker", 3, 0, now)
    ticks(1)
    assert.instanceOf(pool.enter("n81", claimant("n"), 10_000, now), QueueTimeout)
  })

  it("is queued while the pool has no worker, however long its tenant's queue seems to take", () => {
    const occupancy = new PoolOccupancy()
    occupancy.setWorker("worker", 4, 3)
    const pool = drainingPool(80, occupancy)
    occupancy.setWorker("worker", 0)
    assert.isUndefined(pool.enter("n80", claimant("n"), 1_900, 1_000))
    for (let tick = 1; tick <= 14; tick++) pool.tick(1_000 + 200 * tick, 200)
    occupancy.setWorker("next", 4, 3)
    const refused = pool.enter("n81", claimant("n"), 1_900, 3_900)
    assert.instanceOf(refused, QueueTimeout)
    assert.strictEqual(refused.retryAfterMs, 1_620)
  })

  it("is queued while a slot is free for it and all that wait, however slow workers were", () => {
    const occupancy = new PoolOccupancy()
    const pool = drainingPool(80, occupancy)
    occupancy.setWorker("worker", 82, 3)
    assert.isUndefined(pool.enter("n80", claimant("n"), 100, 1_000))
    assert.isUndefined(pool.enter("n81", claimant("n"), 100, 1_000))
    assert.instanceOf(pool.enter("n82", claimant("n"), 100, 1_000), QueueTimeout)
  })

  it("is queued as before after the process was held up, in which time no worker could be heard", () => {
    const pool = drainingPool(80)
    const before = pool.retryAfterMs(claimant("n"))
    pool.tick(8_000, 7_000)
    assert.strictEqual(pool.retryAfterMs(claimant("n")), before)
  })

  it("is refused with the time until its model has a slot, whatever its tenant's other models wait for", () => {
    const occupancy = new PoolOccupancy()
    occupancy.setWorker("worker", 64, 3)
    const pool = new JobPool<string>({ ...limits, items: 200, itemsPerTenant: 190, window: 64 }, occupancy)
    const [slow, quick] = [claimant("n", "slow"), claimant("n", "quick")]
    const modelOf = (job: string) => job.startsWith("s") ? slow : quick
    const take = (now: number) => {
      for (let job = pool.next(now); job !== undefined; job = pool.next(now)) {
        pool.admitted(modelOf(job))
        pool.claimed("worker", 3, 0, now)
      }
    }
    for (let job = 0; job < 156; job++) assert.isUndefined(pool.enter(`s${job}`, slow, 60_000, 0))
    take(0)
    for (let job = 0; job < 30; job++) assert.isUndefined(pool.enter(`q${job}`, quick, 60_000, 0))
    take(0)
    // four slow requests end in a second, and two quick ones; all slots that become free go to the quick model, which has fewer
    for (let tick = 1; tick <= 5; tick++) {
      const now = 200 * tick
      if (tick > 1) pool.ended(slow, true)
      if (tick % 2 === 0) pool.ended(quick, true)
      take(now)
      pool.tick(now, 200)
    }
    // 22 wait, and four were served; the tenant's 122 jobs together would take half a minute
    assert.strictEqual(pool.retryAfterMs(quick), 5_500)
  })

  it("is queued if the drain rate is unknown", () => {
    const pool = new JobPool<string>(limits)
    for (let job = 0; job < 90; job++) assert.isUndefined(pool.enter(`n${job}`, claimant("n"), 1, 0))
    assert.strictEqual(pool.full(claimant("n")).retryAfterMs, 1_000)
  })
})
