/** How the delivery of an event goes on after each attempt. */
import { assert, describe, it } from "@effect/vitest"
import * as Delivery from "../../../shared/webhooks/Delivery.ts"

const minute = 60_000
const hour = 60 * minute
const begun = 1_000_000

const delivery = Delivery.make({ id: "evt_1", type: "response.completed", subject: "resp_1", at: begun }, begun)
const refused = { is: "refused", text: "503" } as const

/** The delivery after attempts that are all refused, each when it is due. */
const attemptsOf = (delivery: Delivery.Delivery): ReadonlyArray<Delivery.Delivery> => {
  const next = Delivery.after(delivery, refused, delivery.next)
  return next.status === "pending" ? [next, ...attemptsOf(next)] : [next]
}

describe("a delivery", () => {
  it("is tried after growing pauses of at most four hours, for a day", () => {
    const all = attemptsOf(delivery)
    const pauses = all.slice(0, -1).map(({ next }, index) => next - (all[index - 1]?.next ?? begun))
    assert.deepStrictEqual(pauses.slice(0, 4), [5_000, 20_000, 80_000, 320_000])
    assert.strictEqual(Math.max(...pauses), 4 * hour)
    const [last] = all.slice(-1)
    assert.deepInclude(last, { status: "failed", outcome: "503", attempts: all.length })
    assert.isAbove(last?.next ?? 0, begun + 20 * hour - minute)
    assert.isAtMost(last?.next ?? 0, begun + 24 * hour)
  })

  it("ends with an accepted or a final attempt", () => {
    assert.strictEqual(Delivery.after(delivery, { is: "accepted", text: "200" }, begun).status, "delivered")
    assert.strictEqual(Delivery.after(delivery, { is: "final", text: "no" }, begun).status, "failed")
  })

  it("has another day and a new round when it is sent again", () => {
    const failed = Delivery.after(delivery, { is: "final", text: "no" }, begun)
    const again = Delivery.restart(failed, begun + 30 * hour)
    assert.deepInclude(again, { status: "pending", attempts: 0, round: 1, next: begun + 30 * hour })
    assert.isAbove(attemptsOf(again).length, 5)
    assert.strictEqual(Delivery.bodyOf(again), Delivery.bodyOf(delivery))
  })
})
