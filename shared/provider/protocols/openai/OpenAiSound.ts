/** Sends sound in the OpenAI dialect, which accepts it only as a file of a form. Other requests become such a form. */
import { Effect, Predicate, Schema } from "effect"
import { transcriptions, translations } from "../../../contract/operations/audio/Transcriptions.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import { formOf, isForm, reader, turnFor } from "../../call/RequestBody.ts"
import { fileOf } from "../../call/SoundFile.ts"
import { encodeForm } from "../../exchange/JsonExchange.ts"
import * as MultipartText from "./MultipartText.ts"

export const around = (relay: Perform): Perform => (call, sink) =>
  takesSound(call) && hasSoundAsText(call)
    ? Effect.flatMap(toForm(call), (form) => relay({ ...call, ...form }, sink))
    : relay(call, sink)

const takesSound = ({ operation: { name } }: Call): boolean =>
  name === transcriptions.name || name === translations.name

const hasSoundAsText = (call: Call): boolean =>
  !isForm(call) || MultipartText.names(call.body, call.contentType).includes("file")

const read = reader(Schema.Struct({ file: Schema.String }))

const toForm = Effect.fnUntraced(function*(call: Call) {
  const turn = turnFor(call)
  const given = isForm(call)
    ? [...yield* formOf(call)]
    : Object.entries((yield* read(call)).json as object).flatMap(([name, value]) => toFields(name, value))
  yield* turn
  const form = new FormData()
  for (const [name, value] of given) {
    if (name === "file") form.append(name, yield* fileOf(value))
    else form.append(name, value)
  }
  yield* turn
  return yield* encodeForm(form)
})

/** The fields of a form for a value. Parts of lists and objects are named as by OpenAI's clients. */
const toFields = (name: string, value: unknown): ReadonlyArray<readonly [name: string, value: string]> => {
  if (value === null) return []
  if (Array.isArray(value)) return value.flatMap((item) => toFields(`${name}[]`, item))
  return Predicate.isObject(value)
    ? Object.entries(value).flatMap(([key, item]) => toFields(`${name}[${key}]`, item))
    : [[name, String(value)]]
}
