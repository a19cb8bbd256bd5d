/** The memory that a body reserves while it comes in, and that its reader keeps afterwards. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Readable } from "node:stream"
import { BodyCollector } from "../../../services/ingress/request/BodyCollector.ts"
import { read } from "../../../services/ingress/request/IncomingBody.ts"
import { UploadBudget } from "../../../services/ingress/request/UploadBudget.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { collectGarbage } from "../../fixture/general/Garbage.ts"

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

  it.each([
    { how: "in one piece", announcedBytes: 400, pieceBytes: [400] },
    { how: "in several pieces", announcedBytes: 400, pieceBytes: [300, 100] },
    { how: "unannounced", announcedBytes: 0, pieceBytes: [300, 100] }
  ])("that came $how is not kept by its reader, which may still be stopped", async ({ announcedBytes, pieceBytes }) => {
    const source = new Readable({ read: () => undefined })
    for (const bytes of pieceBytes) source.push(new Uint8Array(bytes))
    source.push(null)
    const budget = new UploadBudget(new TenantBudget(2_000), "key")
    const reading: { stop?: () => void; memory?: WeakRef<ArrayBufferLike> } = {}
    await new Promise<void>((resolve) => {
      reading.stop = read(source, announcedBytes, budget, (body) => {
        reading.memory = new WeakRef(Result.getOrThrow(body).buffer)
        resolve()
      })
    })
    await collectGarbage()
    assert.isDefined(reading.memory)
    assert.isUndefined(reading.memory?.deref())
    reading.stop?.()
  })
})
