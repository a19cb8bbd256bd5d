/** The memory that a body reserves while it comes in. */
import { assert, describe, it } from "@effect/vitest"
import { BodyCollector } from "../../../services/ingress/request/BodyCollector.ts"
import { UploadBudget } from "../../../services/ingress/request/UploadBudget.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

const collect = (announcedBytes: number, pieces: ReadonlyArray<Uint8Array>) => {
  const bodies = new TenantBudget(2_000)
  const collector = new BodyCollector(new UploadBudget(bodies, "key"), announcedBytes, 10_000)
  const areTaken = pieces.map((piece) => collector.add(piece))
  let free = 1_000
  while (!bodies.reserve("key", free)) free--
  return { areTaken, body: Buffer.from(collector.take()).toString(), reserved: 1_000 - free }
}

describe("a body", () => {
  it("that comes whole in one piece is not counted", () => {
    assert.deepStrictEqual(collect(4, [Buffer.from("bees")]), { areTaken: [true], body: "bees", reserved: 0 })
  })

  it("that is announced counts in full from its first piece on", () => {
    assert.deepStrictEqual(collect(400, [Buffer.from("b")]), { areTaken: [true], body: "b", reserved: 400 })
  })

  it("that is not announced counts what has come", () => {
    const pieces = Array.from("bees dance", (letter) => Buffer.from(letter))
    const { areTaken, body, reserved } = collect(0, pieces)
    assert.deepStrictEqual([new Set(areTaken), body], [new Set([true]), "bees dance"])
    assert.isAtLeast(reserved, body.length)
    assert.isAtMost(reserved, 2 * body.length)
  })

  it("is refused if there is no memory for it", () => {
    assert.deepStrictEqual(collect(1_001, [Buffer.from("b")]).areTaken, [true])
    assert.deepStrictEqual(collect(0, [Buffer.alloc(600), Buffer.alloc(401)]).areTaken, [true, false])
  })

  it("may be empty", () => {
    assert.deepStrictEqual(collect(0, []), { areTaken: [], body: "", reserved: 0 })
  })
})
