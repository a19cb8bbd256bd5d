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
    assert.deepStrictEqual([budget.reserve("b", 40), budget.reserve("c", 11), budget.reserve("c", 10)], [
      true,
      false,
      true
    ])
    budget.release("a", 50)
    assert.deepStrictEqual([budget.reserve("c", 41), budget.reserve("a", 50)], [false, true])
  })
})
