/**
 * Stores responses, sealed for their owners. Workers write and read them, ingress reads and deletes them.
 *
 * A response consists of pages, each a record of a bucket. The first page names their number and is written last, so a response that
 * can be found is complete. A bucket suits them better than an object store: most responses are one page, written or read with one
 * request.
 *
 * A response holds only the items of its own request and output. Earlier items of the conversation are in the records of its ancestors.
 * When there are many ancestors, or the first is about to expire, the response holds all items itself.
 */
import { Config, Context, Effect, Layer, Option } from "effect"
import * as ExactJson from "../bounds/ExactJson.ts"
import { atLeast } from "../contract/Fields.ts"
import type { Owner } from "../contract/Owner.ts"
import { isResponseId, ofSuffix, suffixOf } from "../contract/ResponseId.ts"
import { backOff, JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import * as ResponseRecord from "./ResponseRecord.ts"
import * as OwnerQuota from "./OwnerQuota.ts"
import { digest, ownerToken } from "./OwnerToken.ts"
import * as Seal from "./Seal.ts"

/** The conversation that a request continues. */
export interface Conversation {
  /** The responses that hold the items; empty if there are none. */
  readonly ancestors: ReadonlyArray<ResponseRecord.Ancestor>
  /** The items of all of them, as JSON texts with commas between them. */
  readonly items: Uint8Array
}

/** Reserves memory for a response of this many bytes before it is read. */
export type Reserve<E> = (bytes: number) => Effect.Effect<void, E>

const noReserve: Reserve<never> = () => Effect.void

export class Responses extends Context.Service<Responses, {
  /** Stores a response. `conversation`: the one that its request has continued. */
  readonly write: (
    owner: Owner,
    record: Omit<ResponseRecord.ResponseRecord, "ancestors">,
    conversation: Conversation | undefined
  ) => Effect.Effect<void, JetStreamFailed>
  /** Finds a response; `None` if it is unknown, expired or another owner's. */
  readonly find: <E = never>(
    owner: Owner,
    id: string,
    reserve?: Reserve<E>
  ) => Effect.Effect<Option.Option<ResponseRecord.ResponseRecord>, JetStreamFailed | E>
  /** The items of a response's ancestors, as JSON texts with commas between them; `None` if an ancestor no longer exists. */
  readonly findEarlier: (
    owner: Owner,
    record: ResponseRecord.ResponseRecord
  ) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  /** The items with these ids that exist, by id. Reads at most `maxItemBytes` of records; items beyond are not found. */
  readonly findItems: (
    owner: Owner,
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, unknown>, JetStreamFailed>
  /** Deletes a response; `false` if there is none. */
  readonly delete: (owner: Owner, id: string) => Effect.Effect<boolean, JetStreamFailed>
}>()("shared/records/Responses") {
  /** Reads `GATEWAY_SECRET`. Retries everything that fails with `JetStreamFailed` for `patienceMs`. */
  static readonly layer = ({ patienceMs }: { readonly patienceMs: number }) => Layer.effect(Responses, open(patienceMs))
}

/** The size of a page in bytes: below NATS's limit of 1 MiB for a message. */
const pageBytes = 512 * 1024

/** Maximum number of pages that are written or read concurrently. */
const concurrency = 4

const maxAncestors = 32

/** Limits on reading items, because a request may refer to items of any number of responses. */
const maxItemBytes = 64 * 1024 * 1024
const itemConcurrency = 8

/** The head of the first page: the number of pages, and the response's place in the count of `OwnerQuota.ts`. */
const countBytes = 4
const placeBytes = 6
const headBytes = countBytes + placeBytes

/** The overhead of a record in NATS, including its key, in bytes. */
const messageBytes = 256

/** How many MiB of responses each owner may store. */
const quotaMiB = Config.schema(atLeast(1), "GATEWAY_RESPONSES_MIB").pipe(Config.withDefault(1024))

/** The form of an item's id that contains the id of its response. */
const ownItem = /^[a-z]+_([0-9a-f]{32})\d*$/

const open = Effect.fn("Responses.open")(function*(patienceMs: number) {
  const seal = yield* Seal.fromSecret
  const bucket = yield* openBucket(buckets.responses).pipe(Effect.retry(whileJetStreamFails))
  const quota = yield* OwnerQuota.make({ bucket, quota: (yield* quotaMiB) * 1024 * 1024 })
  const keptForMs = yield* bucket.keptForMs.pipe(Effect.retry(whileJetStreamFails))
  const late = Effect.fail(new JetStreamFailed({ detail: "the store of responses did not answer in time" }))
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) =>
    Effect.retry(effect, backOff).pipe(Effect.timeoutOrElse({ duration: patienceMs, orElse: () => late }))

  const pageKey = (owner: Owner, id: string, page: number) => `${ownerToken(owner)}.${id}.${page}`
  /** The index of the items whose ids do not contain the id of their response, and the list of those of a response. */
  const itemKey = (owner: Owner, digest: string) => `${ownerToken(owner)}.item.${digest}`
  const itemsKey = (owner: Owner, id: string) => `${ownerToken(owner)}.${id}.items`
  const placeOf = (owner: Owner, id: string, page: number): Seal.Place => ({ owner, kind: "response", id, page })

  const putPage = (owner: Owner, id: string, page: number, bytes: Uint8Array) =>
    again(bucket.put(pageKey(owner, id, page), seal.seal(placeOf(owner, id, page), bytes)))
  const getPage = (owner: Owner, id: string, page: number) =>
    Effect.map(
      again(bucket.getBytes(pageKey(owner, id, page))),
      Option.flatMap((sealed) => seal.open(placeOf(owner, id, page), sealed))
    )

  const pagesFrom = (first: Option.Option<Uint8Array>): number =>
    Option.match(first, { onNone: () => 0, onSome: (bytes) => Buffer.from(bytes).readUInt32BE(0) })
  const rest = (count: number) => Array.from({ length: Math.max(0, count - 1) }, (_, before) => before + 1)

  const find = Effect.fnUntraced(function*<E = never>(owner: Owner, id: string, reserve: Reserve<E> = noReserve) {
    if (!isResponseId(id)) return Option.none()
    const first = yield* getPage(owner, id, 0)
    if (Option.isNone(first)) return Option.none()
    const further = rest(pagesFrom(first))
    yield* reserve(first.value.length + further.length * pageBytes)
    const others = yield* Effect.forEach(further, (page) => getPage(owner, id, page), { concurrency })
    return Option.flatMap(
      Option.all(others),
      (others) => ResponseRecord.decode(id, Buffer.concat([first.value.subarray(headBytes), ...others]))
    )
  })

  /** Removes an item from the index, unless a later response has it, too. */
  const removeItem = Effect.fnUntraced(function*(key: string, id: string) {
    const found = Option.getOrUndefined(yield* again(bucket.getRevision(key)))
    if (found?.value === id) yield* again(bucket.purge(key, found.revision + 1))
  })

  const removeItems = Effect.fnUntraced(function*(owner: Owner, id: string) {
    const list = Option.getOrUndefined(yield* again(bucket.get(itemsKey(owner, id))))
    if (list === undefined) return
    const keys = list.split(" ").map((digest) => itemKey(owner, digest))
    yield* Effect.forEach(keys, (key) => removeItem(key, id), { concurrency, discard: true })
    yield* again(bucket.purge(itemsKey(owner, id)))
  })

  /** The first page last, so that a failed removal can be repeated. */
  const remove = Effect.fnUntraced(function*(owner: Owner, id: string, first: Option.Option<Uint8Array>) {
    yield* removeItems(owner, id)
    const purge = (page: number) => again(bucket.purge(pageKey(owner, id, page)))
    // one by one: for a filter with a wildcard older servers search the whole bucket
    yield* Effect.forEach(rest(pagesFrom(first)), purge, { concurrency, discard: true })
    yield* purge(0)
  })

  /** The owner's records in the order in which they were stored. */
  const nextOf = (owner: Owner): OwnerQuota.Next => (from) =>
    Effect.map(
      again(bucket.next(`${ownerToken(owner)}.*.0`, from)),
      Option.map(({ at, key, value }) => {
        const [, id = ""] = key.split(".")
        const first = Option.flatMap(value, (sealed) => seal.open(placeOf(owner, id, 0), sealed))
        const place = Option.map(first, (bytes) => Buffer.from(bytes).readUIntBE(countBytes, placeBytes))
        return { at, place: Option.getOrUndefined(place), delete: remove(owner, id, first) }
      })
    )

  const isNearExpiry = (now: number, [first]: ReadonlyArray<ResponseRecord.Ancestor>): boolean =>
    first !== undefined && keptForMs > 0 && now - first.at > keptForMs / 2

  return Responses.of({
    write: Effect.fn("Responses.write")(function*(owner, record, conversation) {
      const { ancestors, items } = conversation ?? { ancestors: [], items: new Uint8Array(0) }
      const isCopied = ancestors.length === 0 || ancestors.length >= maxAncestors || isNearExpiry(record.at, ancestors)
      const whole = ResponseRecord.encode(
        isCopied ? { ...record, ancestors: [], input: joinItems([items, record.input]) } : { ...record, ancestors }
      )
      const count = Math.max(1, Math.ceil(whole.length / pageBytes))
      const head = Buffer.alloc(headBytes)
      head.writeUInt32BE(count)
      const { id } = record
      const bytesOf = (page: number) => whole.subarray(page * pageBytes, (page + 1) * pageBytes)
      const strangers = itemIds(record.output).filter((item) => ownItem.exec(item)?.[1] !== suffixOf(id))
      const digests = strangers.map((item) => digest(item))
      const list = digests.join(" ")
      const index = digests.map((digest) => ({ key: itemKey(owner, digest), value: id }))
      if (list !== "") index.push({ key: itemsKey(owner, id), value: list })
      const bytes = whole.length + list.length + (count + index.length) * messageBytes
      const [place] = yield* Effect.all([
        again(quota.take(`${ownerToken(owner)}.count`, bytes, nextOf(owner))),
        Effect.forEach(rest(count), (page) => putPage(owner, id, page, bytesOf(page)), { concurrency }),
        Effect.forEach(index, ({ key, value }) => again(bucket.put(key, value)), { concurrency })
      ], { concurrency: "unbounded" })
      head.writeUIntBE(place, countBytes, placeBytes)
      yield* putPage(owner, id, 0, Buffer.concat([head, bytesOf(0)]))
    }),
    find,
    findEarlier: (owner, { ancestors }) =>
      Effect.map(
        Effect.forEach(ancestors, ({ id }) => find(owner, id), { concurrency: 16 }),
        (records) =>
          Option.map(
            Option.all(records),
            (records) => joinItems(records.flatMap(({ input, output }) => [input, output]))
          )
      ),
    findItems: Effect.fnUntraced(function*(owner, ids) {
      const found = new Map<string, unknown>()
      const missing = () => [...new Set(ids)].filter((id) => !found.has(id))
      let bytes = 0
      const collect = Effect.fnUntraced(function*(id: string) {
        if (bytes > maxItemBytes) return
        const record = Option.getOrUndefined(yield* find(owner, id))
        if (record === undefined) return
        bytes += record.input.length + record.output.length
        for (const item of [...itemsIn(record.input), ...itemsIn(record.output)]) {
          const own = idOf(item)
          if (own !== undefined) found.set(own, item)
        }
      })
      const collectAll = (responses: ReadonlyArray<string>) =>
        Effect.forEach(new Set(responses), collect, { concurrency: itemConcurrency, discard: true })
      yield* collectAll(missing().flatMap((id) => ownItem.exec(id)?.slice(1).map(ofSuffix) ?? []))
      const indexed = yield* Effect.forEach(missing(), (id) => again(bucket.get(itemKey(owner, digest(id)))), {
        concurrency: itemConcurrency
      })
      yield* collectAll(indexed.flatMap((id) => Option.toArray(id)))
      return found
    }),
    delete: Effect.fn("Responses.delete")(function*(owner, id) {
      if (!isResponseId(id)) return false
      const first = yield* getPage(owner, id, 0)
      if (Option.isNone(first)) return false
      yield* remove(owner, id, first)
      return true
    })
  })
})

/** The conversation that ends with a response. `earlier`: the items of its ancestors. */
export const conversationOf = (
  { ancestors, at, id, input, output }: ResponseRecord.ResponseRecord,
  earlier: Uint8Array
): Conversation => ({ ancestors: [...ancestors, { id, at }], items: joinItems([earlier, input, output]) })

const comma = Buffer.from(",")

/** Joins lists of items, each without brackets. */
export const joinItems = (lists: ReadonlyArray<Uint8Array>): Uint8Array =>
  Buffer.concat(lists.filter(({ length }) => length > 0).flatMap((list, at) => at === 0 ? [list] : [comma, list]))

/** The items of a list without brackets. */
export const itemsIn = (list: Uint8Array): ReadonlyArray<unknown> =>
  ExactJson.parse(`[${Buffer.from(list).toString()}]`) as ReadonlyArray<unknown>

export const idOf = (item: unknown): string | undefined => {
  const id = typeof item === "object" && item !== null && "id" in item ? item.id : undefined
  return typeof id === "string" ? id : undefined
}

const itemIds = (list: Uint8Array): ReadonlyArray<string> => itemsIn(list).flatMap((item) => idOf(item) ?? [])
