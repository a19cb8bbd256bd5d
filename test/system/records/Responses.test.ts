/** The store of responses on a real server: whole, in conversations, and only for their owners. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Logger, Option } from "effect"
import { hash, randomBytes, randomUUID } from "node:crypto"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { conversationOf, itemsIn, joinItems, Responses } from "../../../shared/records/Responses.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { testSecret } from "../../fixture/gateway/Gateway.ts"

type Settings = Readonly<Record<string, string>>

const start = Effect.fnUntraced(function*(settings: Settings = {}, patienceMs = 30_000) {
  const server = yield* NatsServer.make()
  return { server, ...yield* connect(server, settings, patienceMs) }
})

const connect = Effect.fnUntraced(function*(server: NatsServer, settings: Settings, patienceMs = 30_000) {
  const environment = { NATS_URL: server.url, GATEWAY_SECRET: testSecret, ...settings }
  const layer = Responses.layer({ patienceMs }).pipe(Layer.provideMerge(Nats.layer))
  const provided = Layer.merge(ConfigProvider.layer(ConfigProvider.fromUnknown(environment)), Logger.layer([]))
  const context = yield* Layer.build(layer).pipe(Effect.provide(provided))
  const bucket = yield* openBucket(buckets.responses).pipe(Effect.provideContext(context))
  return { bucket, responses: Context.get(context, Responses) }
})

const ownerOf = (id: string) => ({ id, salt: randomBytes(16).toString("base64url") })
const owner = ownerOf("key_1")
const other = ownerOf("key_2")

const newId = () => `resp_${randomUUID().replaceAll("-", "")}`
const text = (value: unknown) => Buffer.from(JSON.stringify(value))
const day = 24 * 60 * 60_000

/** A response to one message, whose items are the message and its answer. */
const turn = (says: string, at = 0, id = newId()) => ({
  id,
  at,
  input: text({ role: "user", content: says }),
  output: text({ id: `msg_${id.slice(5)}0`, type: "message", content: `Re: ${says}` }),
  response: text({ id, output: [] })
})

/** The conversation up to a response. */
const follow = Effect.fnUntraced(function*(responses: Responses["Service"], id: string) {
  const record = Option.getOrThrow(yield* responses.find(owner, id))
  const earlier = yield* responses.findEarlier(owner, record)
  return Option.map(earlier, (earlier) => conversationOf(record, earlier))
})

/** What each item says. */
const said = (items: Uint8Array) => itemsIn(items).map((item) => (item as { readonly content: string }).content)

describe("a stored response", () => {
  it.live("is read as it was written, whatever its size", () =>
    Effect.gen(function*() {
      const { bucket, responses } = yield* start()
      for (const length of [0, 10, 524_000, 3_000_000]) {
        const record = turn("x".repeat(length), 1_700_000_000_000)
        yield* responses.write(owner, record, undefined)
        const found = Option.getOrThrow(yield* responses.find(owner, record.id))
        assert.deepStrictEqual({ ...found, ancestors: [] }, { ...record, ancestors: [] })
        assert.strictEqual(hash("sha256", found.input), hash("sha256", record.input))
      }
      const stored = yield* bucket.entries
      // with the owner's count
      assert.strictEqual(stored.length, 1 + 1 + 2 + 12 + 1)
      for (const { key, value } of stored) {
        assert.notMatch(`${key} ${Option.getOrThrow(value)}`, /key_1|message|content|xxxxx/)
      }
    }))

  it.live("exists only for its owner, while the owner's salt exists, and until it is deleted", () =>
    Effect.gen(function*() {
      const { bucket, responses } = yield* start()
      const [kept, deleted] = [turn("kept"), turn("d".repeat(1_500_000))]
      yield* responses.write(owner, kept, undefined)
      yield* responses.write(owner, deleted, undefined)
      for (const stranger of [other, { ...other, id: owner.id }, { ...other, salt: owner.salt }]) {
        assert.isTrue(Option.isNone(yield* responses.find(stranger, kept.id)))
        assert.isFalse(yield* responses.delete(stranger, kept.id))
      }
      for (const id of ["", "resp_", "resp_*", ">", `${kept.id}.0`, newId()]) {
        assert.isTrue(Option.isNone(yield* responses.find(owner, id)))
        assert.isFalse(yield* responses.delete(owner, id))
      }
      assert.isTrue(yield* responses.delete(owner, deleted.id))
      assert.isFalse(yield* responses.delete(owner, deleted.id))
      assert.isTrue(Option.isNone(yield* responses.find(owner, deleted.id)))
      assert.isTrue(Option.isSome(yield* responses.find(owner, kept.id)))
      // and the owner's count, but not even the keys of the deleted one
      assert.lengthOf(yield* bucket.keys(">"), 2)
    }))

  it.live("is not read if its pages are exchanged or missing", () =>
    Effect.gen(function*() {
      const { bucket, responses } = yield* start()
      const [one, two] = [turn("1".repeat(1_500_000)), turn("2".repeat(1_500_000))]
      yield* responses.write(owner, one, undefined)
      yield* responses.write(owner, two, undefined)
      const keys = (yield* bucket.keys(">")).toSorted()
      const page = (id: string, at: number) =>
        keys.find((key) => key.endsWith(`${id}.${at}`)) ?? assert.fail(keys.join())
      const copy = Effect.fnUntraced(function*(from: string, to: string) {
        yield* bucket.put(to, Option.getOrThrow(yield* bucket.getBytes(from)))
      })
      yield* copy(page(one.id, 1), page(one.id, 2))
      yield* copy(page(one.id, 1), page(two.id, 1))
      for (const { id } of [one, two]) assert.isTrue(Option.isNone(yield* responses.find(owner, id)))
      const three = turn("3".repeat(1_500_000))
      yield* responses.write(owner, three, undefined)
      yield* bucket.delete((yield* bucket.keys(`*.${three.id}.2`))[0] ?? "")
      assert.isTrue(Option.isNone(yield* responses.find(owner, three.id)))
    }))

  it.live("has the whole conversation, however long, as long as its ancestors exist", () =>
    Effect.gen(function*() {
      const { bucket, responses } = yield* start()
      let conversation = undefined
      const turns = Array.from({ length: 70 }, (_, at) => turn(`message ${at}`, at))
      const expected: Array<string> = []
      for (const [at, one] of turns.entries()) {
        yield* responses.write(owner, one, conversation)
        conversation = Option.getOrThrow(yield* follow(responses, one.id))
        expected.push(`message ${at}`, `Re: message ${at}`)
        assert.deepStrictEqual(said(conversation.items), expected)
        // copied now and then, so that a conversation is read from a few records
        assert.isAtMost(conversation.ancestors.length, 33)
      }
      const sizes = yield* Effect.forEach(
        turns,
        ({ id }) => Effect.map(responses.find(owner, id), (found) => Option.getOrThrow(found).input.length)
      )
      assert.deepStrictEqual(sizes.flatMap((size, at) => size > 100 ? [at] : []), [32, 64])
      assert.strictEqual((yield* bucket.entries).length, 71)

      // those before the last copy are no longer needed
      yield* responses.delete(owner, turns[10]!.id)
      assert.isTrue(Option.isSome(yield* follow(responses, turns[69]!.id)))
      yield* responses.delete(owner, turns[67]!.id)
      assert.isTrue(Option.isNone(yield* follow(responses, turns[69]!.id)))
    }))

  it.live("copies its conversation before the first response of it expires", () =>
    Effect.gen(function*() {
      const { responses } = yield* start({ GATEWAY_RESPONSES_DAYS: "4" })
      const [first, second, third] = [turn("first", day), turn("second", 2 * day), turn("third", 3.5 * day)]
      yield* responses.write(owner, first, undefined)
      yield* responses.write(owner, second, Option.getOrThrow(yield* follow(responses, first.id)))
      yield* responses.write(owner, third, Option.getOrThrow(yield* follow(responses, second.id)))
      assert.lengthOf(Option.getOrThrow(yield* follow(responses, second.id)).ancestors, 2)
      const { ancestors, items } = Option.getOrThrow(yield* follow(responses, third.id))
      assert.deepStrictEqual(ancestors, [{ id: third.id, at: 3.5 * day }])
      assert.deepStrictEqual(said(items), ["first", "Re: first", "second", "Re: second", "third", "Re: third"])
    }))

  it.live(
    "is deleted when its owner has stored its quota since, by any writer, and others' are not",
    () =>
      Effect.gen(function*() {
        const limited = { GATEWAY_RESPONSES_MIB: "2" }
        const { bucket, responses, server } = yield* start(limited)
        const second = yield* connect(server, limited)
        const writers = [responses, second.responses]
        // each record has 120 KB, so that a writer's block of 1 MiB has room for 8: each takes two of them
        const [others, ...turns] = Array.from({ length: 31 }, (_, at) => turn("x".repeat(60_000), at))
        yield* responses.write(other, others!, undefined)
        for (const [at, one] of turns.entries()) yield* writers[at % 2]!.write(owner, one, undefined)
        const isKept = ({ id }: { readonly id: string }) => Effect.map(responses.find(owner, id), Option.isSome)
        yield* Effect.promise(() => eventually(() => Effect.runPromise(isKept(turns[15]!)), (kept) => !kept))
        const kept = yield* Effect.forEach(turns, isKept)
        assert.deepStrictEqual([kept.indexOf(true), kept.lastIndexOf(false)], [16, 15])
        assert.isTrue(Option.isSome(yield* responses.find(other, others!.id)))
        // only the keys of those that are kept, and of the owners' counts, so that a new writer finds the oldest one at once
        assert.lengthOf(yield* bucket.keys(">"), turns.length - 16 + 1 + 2)
      })
  )

  it.live("is found by its items, of the gateway's making or a provider's", () =>
    Effect.gen(function*() {
      const { responses } = yield* start()
      const own = turn("own")
      const relayed = {
        ...turn("relayed"),
        output: joinItems([
          text({ id: "rs_0c44cfe6e9bf2d84", type: "reasoning", encrypted_content: "abc" }),
          // as long as an id of the gateway's
          text({ id: "fc_00000000000000000000000000000000", type: "function_call" })
        ])
      }
      yield* responses.write(owner, own, undefined)
      yield* responses.write(owner, relayed, undefined)
      const wanted = [`msg_${own.id.slice(5)}0`, "rs_0c44cfe6e9bf2d84", "fc_00000000000000000000000000000000"]
      const found = yield* responses.findItems(owner, [...wanted, "msg_unknown", `msg_${own.id.slice(5)}9`])
      assert.deepStrictEqual([...found.keys()].toSorted(), wanted.toSorted())
      assert.deepInclude(found.get("rs_0c44cfe6e9bf2d84"), { encrypted_content: "abc" })
      assert.strictEqual((yield* responses.findItems(other, wanted)).size, 0)
    }))

  it.live(
    "leaves nothing of a provider's items behind, whether it is deleted by its owner or beyond the quota",
    () =>
      Effect.gen(function*() {
        const { bucket, responses } = yield* start({ GATEWAY_RESPONSES_MIB: "2" })
        const relayed = (...items: ReadonlyArray<string>) => ({
          ...turn("x".repeat(600_000)),
          output: joinItems(items.map((id) => text({ id, type: "reasoning" })))
        })
        const [first, second] = [relayed("rs_1", "rs_2", "rs_shared"), relayed("rs_3", "rs_shared")]
        yield* responses.write(owner, first, undefined)
        yield* responses.write(owner, second, undefined)
        yield* responses.delete(owner, first.id)
        const found = yield* responses.findItems(owner, ["rs_1", "rs_2", "rs_3", "rs_shared"])
        assert.deepStrictEqual([...found.keys()].toSorted(), ["rs_3", "rs_shared"])
        // two pages, two items with their list, and the owner's count
        assert.lengthOf(yield* bucket.keys(">"), 2 + 3 + 1)

        // each takes a block of the quota, so that two are kept
        const later = Array.from({ length: 4 }, (_, at) => relayed(`rs_later_${at}`))
        for (const one of later) yield* responses.write(owner, one, undefined)
        const isKept = Effect.map(responses.find(owner, later[1]!.id), Option.isSome)
        yield* Effect.promise(() => eventually(() => Effect.runPromise(isKept), (kept) => !kept))
        assert.lengthOf(yield* bucket.keys(">"), 2 * (2 + 2) + 1)
      })
  )

  it.live("fails to be written or read while the server is down, after a while", () =>
    Effect.gen(function*() {
      const { responses, server } = yield* start({}, 500)
      yield* Effect.promise(() => server.kill())
      const error = yield* Effect.flip(responses.write(owner, turn("lost"), undefined))
      assert.strictEqual(error._tag, "JetStreamFailed")
      assert.strictEqual((yield* Effect.flip(responses.find(owner, newId())))._tag, "JetStreamFailed")
    }))
})
