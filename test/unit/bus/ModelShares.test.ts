/** How the models of one key, or of two, share the slots of a pool when the provider of one of them is slow; on virtual time. */
import { assert, describe, it } from "@effect/vitest"
import TinyQueue from "tinyqueue"
import type { Claimant } from "../../../shared/bus/fairness/FairQueue.ts"
import { PoolOccupancy } from "../../../shared/bus/fairness/PoolOccupancy.ts"
import { JobPool } from "../../../shared/bus/ingress/JobPool.ts"
import { percentile } from "../../figures/Percentile.ts"
import { randomFrom } from "../../fixture/general/Random.ts"

/** The requests of a key for one model. */
interface Traffic {
  readonly tenant: string
  readonly model: string
  readonly perSecond: number
  /** How long a call takes, in milliseconds. */
  readonly ms: number
  /** Which ingress gets the requests. Default: the first. */
  readonly ingress?: number
}

interface Job extends Claimant {
  readonly at: number
  readonly ms: number
  readonly outcome: Outcome
}

/** What became of the requests of a traffic: how long each took, in milliseconds, and how many were refused. */
interface Outcome {
  readonly tookMs: Array<number>
  refused: number
}

const limits = { items: 4_000, itemsPerTenant: 2_000, ageingMs: 5_000, window: 64 }
const slots = 64
/** The queue timeout. */
const patienceMs = 30_000
const tickMs = 200
/** How often ingresses announce what they have taken. */
const announceMs = 50
const durationMs = 300_000

/** Two ingresses that share a pool, and its worker. */
class Gateway {
  readonly #events = new TinyQueue<readonly [at: number, run: () => void]>([], ([a], [b]) => a - b)
  readonly #occupancies = [new PoolOccupancy(), new PoolOccupancy()]
  readonly #pools = this.#occupancies.map((occupancy) => new JobPool<Job>(limits, occupancy))
  #now = 0

  constructor() {
    for (const occupancy of this.#occupancies) occupancy.setWorker("worker", slots, 3)
    this.#announce()
  }

  /** Sends requests at random moments, in an open loop. Returns what became of them, by traffic. */
  run(traffic: ReadonlyArray<Traffic>): ReadonlyArray<Outcome> {
    const random = randomFrom(7)
    const outcomes = traffic.map(({ ingress = 0, model, ms, perSecond, tenant }) => {
      const outcome: Outcome = { tookMs: [], refused: 0 }
      for (let at = 0; at < durationMs; at -= 1_000 * Math.log(1 - random()) / perSecond) {
        const job: Job = { tenant, model, weight: 1, priority: "standard", at, ms, outcome }
        this.#events.push([at, () => this.#enter(this.#pools[ingress]!, job)])
      }
      return outcome
    })
    for (let at = tickMs; at < durationMs; at += tickMs) this.#events.push([at, () => this.#tick()])
    for (let at = announceMs; at < durationMs; at += announceMs) this.#events.push([at, () => this.#announce()])
    for (let event = this.#events.pop(); event !== undefined; event = this.#events.pop()) {
      const [at, happen] = event
      this.#now = at
      happen()
    }
    return outcomes
  }

  #enter(pool: JobPool<Job>, job: Job): void {
    if (pool.enter(job, job, patienceMs, this.#now) === undefined) this.#admit(pool)
    else job.outcome.refused++
  }

  #admit(pool: JobPool<Job>): void {
    for (let job = pool.next(this.#now); job !== undefined; job = pool.next(this.#now)) this.#begin(pool, job)
  }

  #begin(pool: JobPool<Job>, job: Job): void {
    pool.admitted(job)
    pool.published()
    pool.claimed("worker", 3, 0, this.#now)
    pool.unpublished()
    this.#events.push([this.#now + job.ms, () => {
      pool.ended(job, true)
      job.outcome.tookMs.push(this.#now - job.at)
      this.#admit(pool)
    }])
  }

  #tick(): void {
    for (const pool of this.#pools) pool.tick(this.#now, tickMs)
  }

  #announce(): void {
    const [one, other] = this.#occupancies
    const [ofOne, ofOther] = [one!.announced(), other!.announced()]
    one!.setPeer("other", ofOther)
    other!.setPeer("one", ofOne)
    for (const [index, occupancy] of this.#occupancies.entries()) {
      occupancy.divide(this.#occupancies.length)
      this.#admit(this.#pools[index]!)
    }
  }
}

/** A provider that takes twelve seconds, at five requests a second: alone it fills the pool. */
const slow = { tenant: "key_1", model: "slow", perSecond: 5, ms: 12_000 }

describe("a model at a healthy provider, beside one whose provider is slow", () => {
  const answersMs = [20, 100, 300, 1_000]
  const rivals = [
    ["of one key", {}],
    ["of two keys", { tenant: "key_2" }],
    ["of one key at two ingresses", { ingress: 1 }],
    ["of two keys at two ingresses", { tenant: "key_2", ingress: 1 }]
  ] as const

  it.each(rivals)("%s: loses nothing and is hardly later than alone", (_, more) => {
    for (const ms of answersMs) {
      const quick = { ...slow, model: "quick", perSecond: 15, ms, ...more }
      const [, ofQuick] = new Gateway().run([slow, quick])
      assert.strictEqual(ofQuick!.refused, 0)
      // alone, every request takes this long
      assert.isAtMost(percentile(ofQuick!.tookMs, 0.95), 1.5 * ms)
    }
  })
})
