/**
 * Replaces URLs of pictures at the provider's own origin, such as LocalAI's, in relayed answers. Clients must not see such a URL and may
 * be unable to reach it, so the gateway fetches the picture and returns it in the requested form. A URL that no client should open fails
 * the answer; see `PictureUrl.ts`. All other answers pass unchanged.
 */
import { Effect } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import { originOf } from "../../transport/Endpoint.ts"
import { UrlScan } from "../../dialects/images/UrlScan.ts"
import * as ImageAnswer from "../../dialects/images/ImageAnswer.ts"
import * as PictureUrl from "../../dialects/images/PictureUrl.ts"
import * as Json from "../../json/Json.ts"
import * as PaidParts from "../../call/PaidParts.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import { isForm } from "../../call/RequestBody.ts"
import { keepFor } from "../../call/ResultStore.ts"
import { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as MultipartText from "./MultipartText.ts"
import type { Head, Sink } from "../../transport/Sink.ts"

/** A limit above the size of answers that have only URLs, and below that of other answers with pictures, in bytes. */
const holdBytes = 64 * 1024

/** Holds an answer until it is complete, or too large to have only URLs. Passes nothing on after a refused URL. */
class HeldAnswer implements Sink {
  readonly #sink: Sink
  readonly #urls: UrlScan
  #head: Head | undefined
  #held: Array<Uint8Array> = []
  #heldBytes = 0

  constructor(sink: Sink, isAcceptable: (url: string) => boolean) {
    this.#sink = sink
    this.#urls = new UrlScan(isAcceptable)
  }

  get isRefused(): boolean {
    return this.#urls.isRefused
  }

  get hasStarted(): boolean {
    return this.#head !== undefined || this.#sink.hasStarted
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#held)
  }

  start(head: Head): void {
    this.#head = head
    // events have no URLs, and must not wait for each other
    if (head.contentType.startsWith("text/event-stream")) this.#sink.start(head)
  }

  write(bytes: Uint8Array): boolean {
    this.#urls.push(bytes)
    if (this.isRefused) return true
    if (this.#sink.hasStarted) return this.#sink.write(bytes)
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    return this.#heldBytes <= holdBytes || this.release(this.bytes)
  }

  onDrain(resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  /** Sends the answer to the client. */
  release(bytes: Uint8Array): boolean {
    if (this.#head === undefined || this.#sink.hasStarted) return true
    this.#held = []
    this.#sink.start(this.#head)
    return this.#sink.write(bytes)
  }
}

const isOwn = (item: unknown, { endpoint }: Call): item is { readonly url: string } => {
  const url = URL.parse(Json.string(Json.fields(item)["url"]) ?? "")
  return url !== null && url.origin === originOf(endpoint)
}

/** The item with the picture instead of its URL. */
const fetchItem = Effect.fnUntraced(function*(
  { url, ...rest }: { readonly url: string },
  call: Call,
  answerAs: "b64_json" | "url",
  dependencies: ImageAnswer.Dependencies
) {
  const { bytes, kind } = yield* ImageAnswer.fileOf(new URL(url), call, dependencies)
  return answerAs === "url"
    ? { ...rest, url: yield* keepFor(call, dependencies.results, bytes, kind) }
    : { ...rest, b64_json: Buffer.from(bytes).toString("base64") }
})

/** How the client wants the pictures. The provider has accepted the request, so nothing else of it matters here. */
const answerAsIn = (call: Call): "b64_json" | "url" => {
  const body = new RelayedBody(call)
  const format = isForm(call)
    ? MultipartText.valueOf(call.body, call.contentType, "response_format")
    : Json.fields(body.valueOf("parameters"))["response_format"] ?? body.valueOf("response_format")
  return format === "url" ? "url" : "b64_json"
}

/** The answer without URLs at the provider's own origin. */
const fetchOwn = Effect.fnUntraced(function*(
  bytes: Buffer,
  call: Call,
  dependencies: ImageAnswer.Dependencies
): Effect.fn.Return<Uint8Array, JobError> {
  const answer = Json.fields(Json.parse(bytes.toString()))
  const data = Json.list(answer["data"])
  if (!data.some((item) => isOwn(item, call))) return bytes
  const answerAs = answerAsIn(call)
  const items = yield* Effect.forEach(
    data,
    (item) => isOwn(item, call) ? fetchItem(item, call, answerAs, dependencies) : Effect.succeed(item),
    { concurrency: 4 }
  )
  return Buffer.from(JSON.stringify({ ...answer, data: items }))
})

/** Sends what is held of the answer, unless it is refused. */
const release = Effect.fnUntraced(function*(
  held: HeldAnswer,
  call: Call,
  sink: Sink,
  dependencies: ImageAnswer.Dependencies
) {
  if (held.isRefused) return yield* PictureUrl.refused(call.endpoint)
  if (!sink.hasStarted) held.release(yield* fetchOwn(held.bytes, call, dependencies))
})

export const around = (relay: Perform, dependencies: ImageAnswer.Dependencies): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const held = new HeldAnswer(sink, (url) => PictureUrl.isAcceptable(url, call.endpoint))
    const usage = yield* relay(call, held)
    yield* PaidParts.after(call, usage, release(held, call, sink, dependencies))
    return usage
  })
