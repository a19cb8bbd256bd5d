/** What one replica's lease asks the ledger for, and when. */
import { assert, describe, it } from "@effect/vitest"
import * as Ledger from "../../../shared/limits/Ledger.ts"
import { ReplicaLease, type Waiter } from "../../../shared/limits/ReplicaLease.ts"

describe("a lease of a limit on concurrent requests", () => {
  it("asks at once for a request that came while it returned all units", () => {
    let now = 0
    const lease = new ReplicaLease("one", { limit: 60, windowMs: 0 }, () => now, () => undefined)
    const served: Array<string> = []
    const waiter = (name: string): Waiter => ({ units: 1, until: now + 100, resume: () => served.push(name) })
    let entries = 0
    const enter = (ledger: Ledger.Ledger) => {
      const draft = lease.draft(ledger, ++entries)
      return { ledger: draft.entered.ledger, accept: () => lease.accept(draft) }
    }
    lease.enqueue(waiter("first"))
    const first = enter(Ledger.empty)
    first.accept()
    assert.deepStrictEqual(served, ["first"])
    // its lease has ended meanwhile
    now = 60_000
    const returning = enter(first.ledger)
    lease.enqueue(waiter("second"))
    returning.accept()
    assert.strictEqual(lease.dueMs, 0)
    enter(returning.ledger).accept()
    assert.deepStrictEqual(served, ["first", "second"])
  })
})
