/** The record of a key's day knows for which teams each page was counted. */
import { assert, it } from "@effect/vitest"
import { place, type Placements, teamsIn } from "../../../shared/usage/Placements.ts"

const placed = (...pages: ReadonlyArray<readonly [page: number, team: string]>): Placements =>
  pages.reduce<Placements>((placements, [page, team]) => place(placements, page, [team]), [])

it("a page keeps the teams that it was first counted for", () => {
  const placements = placed([3, "a"], [4, "a"], [7, "b"], [7, "c"], [9, "a"])
  assert.deepStrictEqual([3, 4, 6, 7, 8, 9].flatMap((page) => teamsIn(placements, page)), [
    "a",
    "a",
    "a",
    "b",
    "b",
    "a"
  ])
})

it("a page from before teams were stored has those of the first page after it", () => {
  assert.deepStrictEqual(teamsIn(placed([3, "a"], [7, "b"]), 2), ["a"])
})

it("the pages of a recreated stream do not have the teams of the former one", () => {
  const placements = placed([3, "a"], [9, "b"], [2, "c"], [9, "c"])
  assert.deepStrictEqual([2, 3, 9].flatMap((page) => teamsIn(placements, page)), ["c", "c", "c"])
})
