/** How many elements of a list a page has. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { limitIn } from "../../../services/ingress/owned/OwnedRoutes.ts"

const limitOf = (query: string) => limitIn(new URLSearchParams(query))

it.effect("a client may ask for more than a page has, and gets a full page", () =>
  Effect.gen(function*() {
    for (const [query, limit] of [["", 20], ["limit=1", 1], ["limit=100", 100], ["limit=10000", 100]] as const) {
      assert.strictEqual(yield* limitOf(query), limit, query)
    }
  }))

it.effect("a limit is a whole number above 0", () =>
  Effect.gen(function*() {
    for (const query of ["limit=0", "limit=-1", "limit=1.5", "limit=many", "limit=Infinity"]) {
      assert.deepInclude(yield* Effect.flip(limitOf(query)), { param: "limit" }, query)
    }
  }))
