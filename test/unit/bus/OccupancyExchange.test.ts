/** How ingresses that share a pool learn of each other over NATS, also when NATS delivers late or loses something. */
import type { Msg } from "@nats-io/nats-core"
import { assert, describe, it } from "@effect/vitest"
import { encodeSlots } from "../../../shared/bus/fairness/Occupancy.ts"
import { OccupancyExchange, occupancyTickMs } from "../../../shared/bus/fairness/OccupancyExchange.ts"
import type { PoolOccupancy } from "../../../shared/bus/fairness/PoolOccupancy.ts"
import { slotsSubject } from "../../../shared/bus/protocol/Subjects.ts"
import type { Nats } from "../../../shared/nats/Nats.ts"

/** The slots of the pool, and how many of them one tenant may have: all but the reserve. */
const slots = 64
const room = 56

const claimant = { tenant: "key_1", model: "model", weight: 1, priority: "standard" } as const

/** Two ingresses with a burst of one tenant's jobs at each, and NATS between them. */
class Burst {
  #now = 0
  #isLate = false
  #isLosing = false
  readonly #held: Array<Msg> = []
  readonly #receivers: Array<readonly [inbox: string, receive: (message: Msg) => void]> = []
  readonly #exchanges: ReadonlyArray<OccupancyExchange>
  readonly #pools: ReadonlyArray<PoolOccupancy>
  taken = 0

  constructor() {
    this.#exchanges = ["one", "other"].map((id) =>
      new OccupancyExchange(this.#nats(id), () => this.#now, (pool) => this.#takeFrom(pool))
    )
    this.#pools = this.#exchanges.map((exchange) => exchange.pool("chat", "default"))
    this.#publish(slotsSubject("chat", "default", "worker", 3), encodeSlots(slots))
    // both know each other
    this.tick(2)
  }

  #nats(id: string): Nats["Service"] {
    return {
      id,
      isConnected: () => true,
      subscribe: (inbox: string, receive: (message: Msg) => void) => void this.#receivers.push([inbox, receive]),
      outbox: { publish: (subject: string, data = new Uint8Array(0)) => this.#publish(subject, data) }
    } as unknown as Nats["Service"]
  }

  #publish(subject: string, data: Uint8Array): void {
    if (this.#isLosing) return
    this.#held.push({ subject, data, string: () => String(data) } as Msg)
    if (!this.#isLate) this.#deliver()
  }

  #deliver(): void {
    for (const message of this.#held.splice(0)) {
      for (const [inbox, receive] of this.#receivers) {
        if (message.subject.startsWith(inbox.slice(0, -1))) receive(message)
      }
    }
  }

  #takeFrom(pool: PoolOccupancy): void {
    while (pool.hasWaiting && pool.mayTake(claimant, this.#now)) {
      pool.took(claimant)
      this.taken++
    }
  }

  begin(jobs: number): void {
    for (const pool of this.#pools) {
      for (let job = 0; job < jobs; job++) pool.entered(claimant)
      this.#takeFrom(pool)
    }
  }

  tick(times: number): void {
    for (let time = 0; time < times; time++) {
      this.#now += occupancyTickMs
      for (const exchange of this.#exchanges) exchange.tick()
    }
  }

  /** NATS delivers nothing while `act` runs, and everything then. */
  late(act: () => void): void {
    this.#isLate = true
    act()
    this.#isLate = false
    this.#deliver()
  }

  /** NATS loses everything while `act` runs. */
  losing(act: () => void): void {
    this.#isLosing = true
    act()
    this.#isLosing = false
  }
}

describe("ingresses with a burst of one tenant", () => {
  it("use all slots but the reserve, and a few more", () => {
    const burst = new Burst()
    burst.begin(45)
    burst.tick(20)
    assert.isAtLeast(burst.taken, room)
    assert.isBelow(burst.taken, slots)
  })

  it("leave the reserve while NATS delivers nothing, and then use all other slots", () => {
    const burst = new Burst()
    burst.late(() => {
      burst.begin(45)
      burst.tick(20)
      assert.isAtMost(burst.taken, room)
    })
    burst.tick(20)
    assert.isAtLeast(burst.taken, room)
    assert.isBelow(burst.taken, slots)
  })

  it("use all slots but the reserve after NATS has lost what they announced", () => {
    const burst = new Burst()
    burst.losing(() => {
      burst.begin(20)
      burst.tick(1)
    })
    // so that no later announcement equals the lost one
    burst.begin(25)
    burst.tick(20)
    assert.isAtLeast(burst.taken, room)
    assert.isBelow(burst.taken, slots)
  })
})
