/** What the gateway seals: readable only as the same record of the same owner, by a secret that is still listed. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import * as Seal from "../../../shared/records/Seal.ts"

const salt = () => randomBytes(16).toString("base64url")
const owner = { id: "key_1", salt: salt() }
const place: Seal.Place = { owner, kind: "response", id: "resp_1", page: 0 }
const key = randomBytes(32)
const seal = Seal.make([key])

describe("a sealed record", () => {
  it("opens as it was, each time sealed differently", () => {
    for (const text of ["", "a record", "Grüße, 東京 🗼", "long ".repeat(100_000)]) {
      const bytes = Buffer.from(text)
      const [one, other] = [seal.seal(place, bytes), seal.seal(place, bytes)]
      assert.notDeepEqual(one, other)
      assert.isTrue(text === "" || !Buffer.from(one).includes(bytes))
      assert.deepStrictEqual(Seal.make([key]).open(place, one), Option.some(bytes))
    }
  })

  it("opens at no other place", () => {
    const sealed = seal.seal(place, Buffer.from("a record"))
    const others: ReadonlyArray<Partial<Seal.Place>> = [
      { page: 1 },
      { id: "resp_2" },
      { kind: "task" },
      { owner: { ...owner, id: "key_2" } },
      // the owner was deleted and exists again
      { owner: { ...owner, salt: salt() } },
      { kind: "response\",\"resp_1", id: "" }
    ]
    for (const other of others) assert.deepStrictEqual(seal.open({ ...place, ...other }, sealed), Option.none())
  })

  it("does not open if a byte is changed, added or removed", () => {
    const sealed = seal.seal(place, Buffer.from("a record"))
    for (let at = 0; at < sealed.length; at++) {
      const [head, tail] = [sealed.subarray(0, at), sealed.subarray(at + 1)]
      for (const byte of [[], [sealed[at]! ^ 1], [sealed[at]!, 0]]) {
        assert.deepStrictEqual(seal.open(place, Buffer.concat([head, Buffer.from(byte), tail])), Option.none())
      }
    }
    assert.deepStrictEqual(seal.open(place, new Uint8Array(0)), Option.none())
  })

  it("opens by any secret in the list, and is sealed by the first", () => {
    const next = randomBytes(32)
    const old = seal.seal(place, Buffer.from("a record"))
    const both = Seal.make([next, key])
    assert.isTrue(Option.isSome(both.open(place, old)))
    const fresh = both.seal(place, Buffer.from("a record"))
    assert.isTrue(Option.isSome(Seal.make([next]).open(place, fresh)))
    assert.isTrue(Option.isNone(Seal.make([next]).open(place, old)))
    assert.isTrue(Option.isNone(seal.open(place, fresh)))
  })

  it("uses each owner's own key, however many there are", () => {
    const places = Array.from({ length: 1_200 }, (_, at) => ({ ...place, owner: { id: `key_${at}`, salt: salt() } }))
    const sealed = places.map((place) => seal.seal(place, Buffer.from(place.owner.id)))
    for (const [at, place] of places.entries()) {
      assert.deepStrictEqual(seal.open(place, sealed[at]!), Option.some(Buffer.from(place.owner.id)))
    }
  })
})

describe("a sealed text", () => {
  const sealed = Seal.sealText(seal, place, "a summary")

  it("opens only as the same text", () => {
    assert.match(sealed, /^gwc2:response:[\w-]+$/)
    assert.deepStrictEqual(Seal.openText(seal, place, sealed), Option.some("a summary"))
    for (let at = 0; at < sealed.length; at++) {
      const [head, tail] = [sealed.slice(0, at), sealed.slice(at + 1)]
      for (
        const changed of [
          `${head}${tail}`,
          `${head}x${sealed.slice(at)}`,
          `${head}${sealed[at] === "A" ? "B" : "A"}${tail}`
        ]
      ) assert.deepStrictEqual(Seal.openText(seal, place, changed), Option.none(), changed)
    }
  })

  it("is distinguished from what other services sealed", () => {
    assert.isTrue(Seal.isSealedText(sealed))
    assert.isTrue(Seal.isSealedText("gwc1:36a38923:6VlRzhV"))
    assert.isTrue(Seal.isSealedText(sealed.replace("gwc2", "gwc3")))
    for (const foreign of ["gAAAAABm", "eyJh.bGci.OiJ9", "a b c", ""]) assert.isFalse(Seal.isSealedText(foreign))
  })
})

describe("GATEWAY_SECRET", () => {
  const [first, second] = ["a secret of more than thirty-two characters", "another one of more than thirty-two"]
  const sealBy = (secret: string) =>
    Seal.fromSecret.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_SECRET: secret }))))

  it.effect("may list former secrets after the first", () =>
    Effect.gen(function*() {
      const old = (yield* sealBy(first)).seal(place, Buffer.from("a record"))
      assert.isTrue(Option.isSome((yield* sealBy(`${second},${first}`)).open(place, old)))
      assert.isTrue(Option.isSome((yield* sealBy(`${second} , ${first}`)).open(place, old)))
      assert.isTrue(Option.isNone((yield* sealBy(second)).open(place, old)))
    }))

  it.effect("has no short secret, also not in a list", () =>
    Effect.gen(function*() {
      for (const secret of ["", "short", `${first},short`, `short,${first}`, `${first},`]) {
        assert.strictEqual((yield* Effect.flip(sealBy(secret)))._tag, "SecretUnusable", secret)
      }
    }))
})
