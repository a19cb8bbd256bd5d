/** Stores results that clients download by signed URL. Workers write them, ingress serves them, and they expire after an hour. */
import { Context, Effect, Layer, Option, Stream } from "effect"
import { randomUUID } from "node:crypto"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { openStore, type StoredObject } from "../nats/ObjectStore.ts"
import { stores } from "../nats/Storage.ts"
import { SignedUrl, type Verdict } from "./SignedUrl.ts"

/** How long results and their URLs are valid, in milliseconds. */
export const keptForMs = stores.results.ttlMs

/** The kinds of results. An id ends with its kind; the URL's signature covers the id, and so the kind. */
const mediaTypes = {
  png: "image/png",
  jpeg: "image/jpeg",
  webp: "image/webp",
  mp4: "video/mp4"
} as const
export type FileKind = keyof typeof mediaTypes

export interface ResultFile extends StoredObject {
  readonly mediaType: string
}

export class ResultFiles extends Context.Service<ResultFiles, {
  /** Stores the bytes and returns their URL. */
  readonly keep: (bytes: Uint8Array, kind: FileKind) => Effect.Effect<string, JetStreamFailed>
  /** Checks the parts of a signed URL. */
  readonly verify: (id: string, expires: string, signature: string) => Effect.Effect<Verdict>
  /** Finds a file; `None` if it does not exist or has expired. */
  readonly find: (id: string) => Effect.Effect<Option.Option<ResultFile>, JetStreamFailed>
}>()("shared/files/ResultFiles") {
  static readonly layer = Layer.effect(
    ResultFiles,
    Effect.gen(function*() {
      const urls = yield* SignedUrl
      const store = yield* openStore(stores.results).pipe(Effect.retry(whileJetStreamFails))
      return ResultFiles.of({
        keep: Effect.fn("ResultFiles.keep")(function*(bytes, kind) {
          const id = `${randomUUID()}.${kind}`
          yield* store.put(id, Stream.make(bytes))
          return yield* urls.sign(id, keptForMs)
        }),
        verify: urls.verify,
        find: Effect.fn("ResultFiles.find")(function*(id) {
          const kind = id.split(".")[1] ?? ""
          if (!isKind(kind)) return Option.none()
          return Option.map(yield* store.find(id), (object) => ({ ...object, mediaType: mediaTypes[kind] }))
        })
      })
    })
  ).pipe(Layer.provide(SignedUrl.layer))
}

const isKind = (text: string): text is FileKind => Object.hasOwn(mediaTypes, text)
