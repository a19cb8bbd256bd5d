/** The `local` protocol: answers from the engine that is built into the worker. Each worker service supplies its workload's engine. */
import { Context, Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import { operations } from "../../../contract/operations/operations.ts"
import { type Call, type Perform, performByName } from "../../call/Protocol.ts"
import { turnFor } from "../../call/RequestBody.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import * as CountDialects from "../../dialects/CountDialects.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import { type Fate, lostIn } from "../../dialects/conversation/Losses.ts"
import { fatesOf } from "../../dialects/conversation/SchemaFates.ts"
import * as Json from "../../json/Json.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import type { Sink } from "../../transport/Sink.ts"
import * as MultipartText from "../openai/MultipartText.ts"

export class LocalEngines extends Context.Service<LocalEngines, {
  /** The operations that this worker's engine serves, by name. */
  readonly performs: ReadonlyMap<string, Perform>
  /** Wraps a protocol to add the operations that this worker performs by calling it. */
  readonly around?: (perform: Perform) => Perform
}>()("shared/provider/protocols/local/LocalEngines") {}

export const make = (engines: LocalEngines["Service"]): Perform => {
  const perform = performByName(engines.performs)
  return (call, sink) => {
    const { model, operation } = call
    if (operation.needsProvider === true) {
      return Effect.fail(
        InvalidRequest.notSupported(model, operation.name, "no built-in engine does, so use a model of a provider")
      )
    }
    return Effect.flatMap(
      unknownIn(call),
      (unknown) => perform(call, unknown.length === 0 ? sink : warning(sink, unknown))
    )
      .pipe(
        Effect.timeoutOrElse({
          duration: Endpoint.timeoutsOf(call.endpoint).totalMs,
          orElse: () => Effect.fail(Endpoint.timedOut(call.endpoint, "total"))
        })
      )
  }
}

/** The operations that record their unknown fields themselves, so that they need not be found here. */
const recorded = new Set([...ClientDialects.operations, ...CountDialects.operations, ...Embeddings.translated])

const fates: ReadonlyMap<string, Fate> = new Map(
  operations
    .filter(({ name }) => !recorded.has(name))
    .map(({ name, request }) => [name, fatesOf(request)])
)

const text = new TextDecoder()

/** The fields of a request that no engine knows. */
const unknownIn = (call: Call): Effect.Effect<ReadonlyArray<string>> => {
  const known = fates.get(call.operation.name)
  if (known === undefined) return Effect.succeed([])
  return Effect.map(turnFor(call), () => lostIn(bodyOf(call), known))
}

const bodyOf = ({ body, contentType }: Call): unknown =>
  contentType.startsWith("multipart/")
    ? Object.fromEntries(namesIn(body, contentType).map((name) => [name, "text"]))
    : Json.parse(text.decode(body))

/** The names of a form's fields. Parts of a list are named `name[]`. */
const namesIn = (body: Uint8Array, contentType: string): ReadonlyArray<string> =>
  [...MultipartText.names(body, contentType), ...MultipartText.fileNames(body, contentType)]
    .map((name) => name.replace(/\[.*$/s, ""))

/** Adds warnings to the head of the answer. */
const warning = (sink: Sink, warnings: ReadonlyArray<string>): Sink => ({
  get hasStarted() {
    return sink.hasStarted
  },
  start: (head) => sink.start({ ...head, headers: TranslationWarnings.add(head.headers, warnings) }),
  write: (bytes) => sink.write(bytes),
  onDrain: (resume) => sink.onDrain(resume)
})
