/**
 * Stores requests and answers of tasks in pages, sealed for their owners. A page of an answer is written only once: if two workers
 * write the same one, the second is refused.
 */
import { Effect, Option, type Schedule } from "effect"
import type { Owner } from "../../contract/Owner.ts"
import type { JetStreamFailed } from "../../nats/JetStream.ts"
import type { Bucket } from "../../nats/KeyValue.ts"
import { ownerToken } from "../../records/OwnerToken.ts"
import type * as Seal from "../../records/Seal.ts"
import * as Page from "./Page.ts"
import type { TaskBytes } from "../TaskBytes.ts"
import type { TaskHints } from "./TaskHints.ts"

/** Maximum number of bytes of a request or an answer in one page: below NATS's limit of 1 MiB for a message. */
export const maxPageBytes = 512 * 1024

/** Maximum number of pages that are written or read concurrently. */
const concurrency = 4

/** The key of a task's record. Keys of pages have two more parts. */
export const recordKey = (owner: Owner, id: string): string => `${ownerToken(owner)}.${id}`

/** The keys of all records of an owner. */
export const recordKeys = (owner: Owner): string => recordKey(owner, "*")

type Kind = "request" | "answer"

export interface TaskPages {
  /** Stores the body of a request, and returns the number of its pages. */
  readonly writeRequest: (owner: Owner, id: string, body: Uint8Array) => Effect.Effect<number, JetStreamFailed>
  /** The body of a request; `None` if a page is missing. */
  readonly readRequest: (
    owner: Owner,
    id: string,
    pages: number
  ) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  /** Stores a page of the answer, at most `maxPageBytes`. `false` if a different page with this number exists. */
  readonly append: (
    owner: Owner,
    id: string,
    page: number,
    about: Page.About,
    bytes: Uint8Array
  ) => Effect.Effect<boolean, JetStreamFailed>
  /** A page of the answer. Numbers start at 0. */
  readonly read: (
    owner: Owner,
    id: string,
    page: number
  ) => Effect.Effect<Option.Option<Page.Page>, JetStreamFailed>
}

/** `countAnswer`: counts the bytes of each stored page of an answer. */
export const make = (
  bucket: Bucket,
  seal: Seal.Seal,
  hints: TaskHints,
  patience: Schedule.Schedule<unknown>,
  countAnswer: TaskBytes["answer"] = () => Effect.void
): TaskPages => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)
  const keyOf = (owner: Owner, id: string, kind: Kind, page: number) => `${recordKey(owner, id)}.${kind}.${page}`
  const placeOf = (owner: Owner, id: string, kind: Kind, page: number): Seal.Place => ({
    owner,
    kind: `task ${kind}`,
    id,
    page
  })
  const get = (owner: Owner, id: string, kind: Kind, page: number) =>
    Effect.map(
      again(bucket.getBytes(keyOf(owner, id, kind, page))),
      Option.flatMap((sealed) => seal.open(placeOf(owner, id, kind, page), sealed))
    )

  return {
    writeRequest: Effect.fnUntraced(function*(owner, id, body) {
      const count = Math.max(1, Math.ceil(body.length / maxPageBytes))
      const pages = Array.from({ length: count }, (_, page) => page)
      yield* Effect.forEach(pages, (page) => {
        const bytes = body.subarray(page * maxPageBytes, (page + 1) * maxPageBytes)
        return again(
          bucket.put(keyOf(owner, id, "request", page), seal.seal(placeOf(owner, id, "request", page), bytes))
        )
      }, { concurrency, discard: true })
      return count
    }),
    readRequest: (owner, id, pages) =>
      Effect.map(
        Effect.forEach(Array.from({ length: pages }, (_, page) => page), (page) => get(owner, id, "request", page), {
          concurrency
        }),
        (found) => Option.map(Option.all(found), (parts) => Buffer.concat(parts))
      ),
    append: Effect.fnUntraced(function*(owner, id, page, about, bytes) {
      const key = keyOf(owner, id, "answer", page)
      const sealed = seal.seal(placeOf(owner, id, "answer", page), Page.encode(about, bytes))
      yield* countAnswer(ownerToken(owner), bytes.length)
      if (!(yield* again(bucket.createBytes(key, sealed)))) {
        // the stored page may be from an earlier try whose confirmation was lost
        const stored = yield* again(bucket.getBytes(key))
        if (Option.isNone(stored) || !Buffer.from(sealed).equals(stored.value)) return false
      }
      hints.give(recordKey(owner, id))
      return true
    }),
    read: (owner, id, page) => Effect.map(get(owner, id, "answer", page), Option.flatMap(Page.decode))
  }
}
