/** The memory that a body reserves while it comes in, and that its reader keeps afterwards. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Readable } from "node:stream"
import { BodyCollector } from "../../../services/ingress/body/BodyCollector.ts"
import { BodyWaits } from "../../../services/ingress/body/BodyMemory.ts"
import { read } from "../../../services/ingress/request/IncomingBody.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { collectGarbage } from "../../fixture/general/Garbage.ts"

const collect = (announcedBytes: number, pieces: ReadonlyArray<Uint8Array>) => {
  const bodies = new TenantBudget(2 * roomBytes)
  const collector = new BodyCollector(new BodyWaits(bodies, 0).upload("key"), announcedBytes, 100_000)
  const areTaken = pieces.map((piece) => collector.add(piece))
  let free = roomBytes
  while (!bodies.reserve("key", free)) free--
  return { areTaken, body: Buffer.from(collector.take()).toString(), reserved: roomBytes - free }
}

const roomBytes = 20_000

describe("a body", () => {
  it("that comes whole in one piece is not counted", () => {
    assert.deepStrictEqual(collect(4, [Buffer.from("bees")]), { areTaken: [true], body: "bees", reserved: 0 })
  })

  const piece = (bytes: number) => Buffer.alloc(bytes, "b")

  // nothing counts that is announced and has not come, except a first part of 4 KiB
  it.each([
    { announcedBytes: 400, pieces: [1], reserved: 400 },
    { announcedBytes: 100_000, pieces: [1], reserved: 4_096 },
    { announcedBytes: 0, pieces: [1], reserved: 4_096 },
    { announcedBytes: 100_000, pieces: [5_000], reserved: 5_000 },
    { announcedBytes: 100_000, pieces: [5_000, 1], reserved: 10_000 },
    { announcedBytes: 6_000, pieces: [5_000, 1], reserved: 6_000 },
    { announcedBytes: 0, pieces: [5_000, 6_000], reserved: 11_000 },
    // the double is more than there is
    { announcedBytes: 0, pieces: [16_000, 1], reserved: Math.ceil(1.125 * 16_001) }
  ])(
    "announced as $announcedBytes, of which $pieces have come, counts $reserved",
    ({ announcedBytes, pieces, reserved }) => {
      const collected = collect(announcedBytes, pieces.map(piece))
      assert.deepStrictEqual(new Set(collected.areTaken), new Set([true]))
      assert.strictEqual(collected.reserved, reserved)
    }
  )

  it("is refused if there is no memory for it", () => {
    assert.deepStrictEqual(collect(0, [piece(12_000), piece(8_001)]).areTaken, [true, false])
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
    const budget = new BodyWaits(new TenantBudget(20_000), 0).upload("key")
    const reading: { stop?: () => void; memory?: WeakRef<ArrayBufferLike> } = {}
    await new Promise<void>((resolve) => {
      reading.stop = read(source, { bytes: announcedBytes, codings: [] }, budget, (body) => {
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
