/** The budget for bodies: its size, and each tenant's share. */
import { assert, describe, it } from "@effect/vitest"
import { bodyBudgetBytes, TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

const mebibyte = 1024 * 1024

describe("the budget for bodies", () => {
  it("is a quarter of the process's memory, within bounds", () => {
    const budgets = [128, 512, 1_024, 64_000].map((memory) => bodyBudgetBytes(memory * mebibyte, 4) / mebibyte)
    assert.deepStrictEqual(budgets, [64, 128, 256, 512])
  })

  it("grants half to a tenant, and takes back what is released", () => {
    const budget = new TenantBudget(100)
    assert.deepStrictEqual([budget.reserve("a", 51), budget.reserve("a", 50), budget.reserve("a", 1)], [
      false,
      true,
      false
    ])
    budget.release("a", 50)
    assert.isTrue(budget.reserve("a", 50))
  })

  const cases: ReadonlyArray<readonly [held: ReadonlyArray<number>, most: number]> = [
    // half of 1,000
    [[], 500],
    [[100], 500],
    // what three quarters have left
    [[500], 250],
    [[500, 200], 60],
    // a quarter of what is then left of the last quarter
    [[500, 250], 50],
    [[500, 250, 50], 40],
    [[500, 250, 50, 40], 32]
  ]
  it.each(cases)("that others use %j of grants %d to the next tenant", (held, most) => {
    const budget = new TenantBudget(1_000)
    for (const [tenant, amount] of held.entries()) assert.isTrue(budget.reserve(`other ${tenant}`, amount))
    assert.deepStrictEqual([budget.reserve("next", most + 1), budget.reserve("next", most)], [false, true])
  })

  it("keeps nothing if it is told so", () => {
    const budget = new TenantBudget(2, 0)
    assert.deepStrictEqual(["a", "a", "b", "c"].map((tenant) => budget.reserve(tenant, 1)), [true, false, true, false])
  })

  it("may be exceeded by a bounded amount, which releases repay first", () => {
    const budget = new TenantBudget(100)
    assert.isTrue(budget.reserve("a", 50))
    assert.deepStrictEqual([budget.overdraw("a", 21, 20), budget.overdraw("a", 15, 20)], [false, true])
    assert.deepStrictEqual([budget.overdraw("b", 6, 20), budget.overdraw("b", 5, 20)], [false, true])
    budget.release("a", 15)
    assert.deepStrictEqual([budget.reserve("a", 1), budget.overdraw("b", 15, 20)], [false, true])
    budget.release("a", 50)
    assert.isTrue(budget.reserve("a", 50))
  })
})
