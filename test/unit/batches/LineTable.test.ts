/** What a holder knows about the lines of its batch. */
import { assert, describe, it } from "@effect/vitest"
import { LineTable } from "../../../shared/batches/LineTable.ts"

describe("the lines of a batch", () => {
  it("are counted by their states", () => {
    const lines = new LineTable(4)
    lines.set(0, "submitted")
    lines.set(1, "begun")
    lines.set(2, "completed")
    assert.deepStrictEqual([lines.open, lines.ended, lines.count("unknown")], [2, 1, 1])
    assert.deepStrictEqual([...lines.linesIn(["submitted", "begun"])], [0, 1])
  })

  it("never go back, however often the log tells of them", () => {
    const lines = new LineTable(1)
    for (const state of ["completed", "begun", "submitted", "completed"] as const) lines.set(0, state)
    assert.strictEqual(lines.stateOf(0), "completed")
    assert.isTrue(lines.isComplete)
    assert.deepStrictEqual([lines.open, lines.ended], [0, 1])
  })

  it("are no others than those of the batch", () => {
    const lines = new LineTable(1)
    lines.set(7, "completed")
    assert.strictEqual(lines.ended, 0)
  })
})
