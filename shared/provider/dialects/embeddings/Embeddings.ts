/** Serves all embeddings operations with an `EmbeddingModel`. */
import { Effect, Stream } from "effect"
import * as PaidParts from "../../call/PaidParts.ts"
import { reader } from "../../call/RequestBody.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import * as JsonText from "../../json/JsonText.ts"
import { writeAll } from "../../transport/Sink.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import { lossesOf } from "../conversation/ClientRequest.ts"
import { cohereForm } from "./CohereForm.ts"
import type { EmbeddingForm } from "./EmbeddingForm.ts"
import type { EmbeddingModel } from "./EmbeddingModel.ts"
import { geminiBatchForm, geminiForm } from "./GeminiForm.ts"
import { openAiEngineForm, openAiForm } from "./OpenAiForm.ts"

export interface Settings {
  /** Whether the vectors depend on their purpose. Default: false. */
  readonly hasPurposes?: boolean
}

/** Makes something for each form. */
const map = <A>(make: <Request>(form: EmbeddingForm<Request>) => A): ReadonlyArray<A> => [
  make(openAiForm),
  make(openAiEngineForm),
  make(geminiForm),
  make(geminiBatchForm),
  make(cohereForm)
]

/** The names of the operations. */
export const operations = map(({ operation }) => operation)

/** The operations whose unknown fields are recorded as lost instead of passed on. */
export const translated = map(({ fates, operation }) => fates === undefined ? [] : [operation]).flat()

const lists: ReadonlyMap<string, ReadonlyArray<string>> = new Map(map(({ lists, operation }) => [operation, lists]))

/** The number of texts in a request of any operation, without decoding it. At least 1. */
export const textCount = ({ body, operation: { name } }: Pick<Call, "body" | "operation">): number => {
  const names = lists.get(name) ?? []
  const members = names.length === 0 ? [] : JsonText.members(body) ?? []
  const found = members.filter((member) => names.includes(member.name))
  return Math.max(1, ...found.map((member) => [...JsonText.items(body, member)].length))
}

/** The implementations by the operation's name. */
export const performs = (model: EmbeddingModel, settings: Settings = {}): ReadonlyMap<string, Perform> =>
  new Map(map((form) => [form.operation, perform(model, form, settings)]))

const utf8 = new TextEncoder()

const perform = <Request>(
  model: EmbeddingModel,
  { dimensionsName, fates, printer, read, request: schema }: EmbeddingForm<Request>,
  { hasPurposes = false }: Settings
): Perform => {
  const decode = reader(schema)
  return Effect.fnUntraced(function*(call, sink) {
    const { json, request } = yield* decode(call)
    const losses = lossesOf(call, {}, "ordinary")
    if (fates !== undefined) losses.recordUnmapped(json, fates)
    const { purpose, ...asked } = read(request, json, losses)
    if (purpose !== undefined && !hasPurposes) losses.warn(purpose.path)
    yield* losses.failIfRefused
    const { usage, vectors, warnings = [] } = yield* model(call, {
      ...asked,
      dimensionsName,
      purpose: purpose?.is,
      losses
    })
    const { end, start, vector } = printer(request, asked.texts)
    let index = 0
    const answer = Stream.make(start).pipe(
      // yields to other requests between two pieces
      Stream.concat(
        Stream.mapEffect(
          vectors,
          (some) => Effect.as(Effect.yieldNow, some.map((each) => vector(each, index++)).join(""))
        )
      ),
      Stream.concat(Stream.sync(() => end(usage, call.answersAs))),
      Stream.map((json) => utf8.encode(json))
    )
    const headers = TranslationWarnings.toHeaders([...losses.warnings, ...warnings])
    sink.start({ status: 200, contentType: "application/json", headers })
    yield* PaidParts.after(call, usage, writeAll(sink, answer))
    return usage
  })
}
