/** The table of rights fails closed. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { assert, describe, it } from "@effect/vitest"
import { handleAll } from "../../../services/console/access/Narrowed.ts"
import { CurrentScope } from "../../../services/console/api/Admin.ts"
import { ConsoleApi } from "../../../services/console/api/Api.ts"
import { extentOf, rights } from "../../../services/console/api/Rights.ts"

describe("rights", () => {
  it("have a row for each endpoint, or do not compile", () => {
    // @ts-expect-error -- the other endpoints for keys have no row
    const incomplete: typeof rights = { ...rights, keys: { list: rights.keys.list } }
    assert.strictEqual(incomplete.session, rights.session)
  })

  it("are the administrator's alone where the table has no row", () => {
    for (
      const [group, endpoint] of [["other", "list"], ["keys", "other"], ["constructor", "name"], ["keys", "toString"]]
    ) {
      assert.strictEqual(extentOf("admin", group ?? "", endpoint ?? ""), "all")
      assert.strictEqual(extentOf("auditor", group ?? "", endpoint ?? ""), "none")
      assert.strictEqual(extentOf("member", group ?? "", endpoint ?? ""), "none")
    }
  })

  it("let no handler compile that ignores the scope where members are limited to their teams", () => {
    HttpApiBuilder.group(
      ConsoleApi,
      "traces",
      (handlers) => handleAll("traces", handlers, { find: () => Effect.as(CurrentScope, []) })
    )
    HttpApiBuilder.group(ConsoleApi, "traces", (handlers) =>
      handleAll("traces", handlers, {
        // @ts-expect-error -- spans of every key
        find: () => Effect.succeed([])
      }))
  })
})
