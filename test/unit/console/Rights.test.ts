/** The table of rights fails closed. */
import { assert, describe, it } from "@effect/vitest"
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
})
