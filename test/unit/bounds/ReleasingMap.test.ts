/** Lookup by id, iteration in order of insertion, and deletion. */
import { assert, describe, it } from "@effect/vitest"
import { ReleasingMap } from "../../../shared/bounds/ReleasingMap.ts"

describe("a releasing map", () => {
  const [a, b, c] = [{ id: "a" }, { id: "b" }, { id: "c" }]

  it("finds an item until it is deleted", () => {
    const present = new ReleasingMap<{ readonly id: string }>()
    for (const item of [a, b, c]) present.add(item)
    present.delete(b)
    present.delete(b)
    present.delete({ id: "unknown" })
    assert.strictEqual(present.get("a"), a)
    assert.isUndefined(present.get("b"))
    assert.strictEqual(present.size, 2)
    assert.deepStrictEqual([...present], [a, c])
  })

  it("may change during iteration", () => {
    const present = new ReleasingMap<{ readonly id: string }>()
    present.add(a)
    present.add(b)
    const met: Array<string> = []
    for (const item of present) {
      met.push(item.id)
      if (item !== a) continue
      present.delete(a)
      present.delete(b)
      present.add(c)
    }
    assert.deepStrictEqual(met, ["a", "c"])
  })
})
