/** A catalogue's file: how it is read, how its mistakes are told, and how its changes are followed. */
import { Config, Effect, FileSystem, Result, Schedule, Schema } from "effect"
import * as Mistake from "../contract/Mistake.ts"
import type { Remark } from "./Inconsistencies.ts"
import { literalSecrets } from "./LiteralSecrets.ts"
import * as YamlText from "./YamlText.ts"

export const Located = Schema.Struct({
  /** `null` where it is the file as a whole that is wrong. */
  line: Schema.NullOr(Schema.Int),
  message: Schema.String
})
export type Located = typeof Located.Type

/** A mistake as a line of text, as compilers write them. */
export const located = (file: string, { line, message }: Located): string =>
  line === null ? `${file}: ${message}` : `${file}:${line} ${message}`

/** The file cannot be read or does not say what a catalogue must. */
export class CatalogueInvalid extends Schema.TaggedError<CatalogueInvalid>()("CatalogueInvalid", {
  file: Schema.String,
  mistakes: Schema.NonEmptyArray(Located)
}) {
  override get message() {
    return this.mistakes.map((mistake) => located(this.file, mistake)).join("\n")
  }
}

/** Turns a path in the file, and what is wrong or notable there, into a place that a reader can find. */
export type At = (path: ReadonlyArray<PropertyKey>, message: string) => Located

/** Reads the value of a whole file as a catalogue, or as a part of one. */
export type Decoder<A> = (value: unknown) => Result.Result<A, ReadonlyArray<Remark>>

/** What a schema says of a value, as remarks about places of the file. */
export const decoderOf = <A>(schema: Schema.Codec<A, unknown>): Decoder<A> => {
  // a misspelt field would otherwise be a setting that silently does nothing
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  return (value) => Result.mapError(decode(value), ({ issue }) => Mistake.all(issue, value))
}

const decode = <A>(
  text: string,
  decoder: Decoder<A>
): Result.Result<{ readonly value: A; readonly at: At }, ReadonlyArray<Located>> =>
  Result.gen(function*() {
    const yaml = yield* YamlText.read(text)
    const at: At = (path, message) => ({
      line: yaml.lineOf(path),
      message: Mistake.line({ path, message }, "the file")
    })
    const decoded = decoder(yaml.value)
    const literals = literalSecrets(yaml.value)
    if (Result.isSuccess(decoded) && literals.length === 0) return { value: decoded.success, at }
    const known = new Set(literals.map(({ path }) => Mistake.place(path)))
    const others = Result.isFailure(decoded)
      ? decoded.failure.filter(({ path }) => !known.has(Mistake.place(path)))
      : []
    return yield* Result.fail([...literals, ...others].map(({ message, path }) => at(path, message)))
  })

/** Decodes a file's text. Every mistake is named with its line and path, and none repeats what is written there. */
export const decodeText = <A>(file: string, text: string, decoder: Decoder<A>) =>
  Effect.suspend(() => {
    const decoded = decode(text, decoder)
    if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
    const [first = { line: null, message: "it is not valid YAML" }, ...others] = decoded.failure
    return Effect.fail(new CatalogueInvalid({ file, mistakes: [first, ...others] }))
  })

const unread = "cannot be read: is it a file, and may this user read it?"

export const read = Effect.fn("CatalogueFile.read")(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(file).pipe(
    Effect.mapError(() => new CatalogueInvalid({ file, mistakes: [{ line: null, message: unread }] }))
  )
})

/** The file that `GATEWAY_CONFIG` names, `deploy/local/gateway.yaml` unless it is set. */
export const configured = Config.String("GATEWAY_CONFIG").pipe(Config.withDefault("deploy/local/gateway.yaml"))

/** How soon a change of the file is seen. Polling sees what a ConfigMap's swap of links hides from a watch. */
const lookAgain = Schedule.spaced("1 second")

/** Reads the configured file and follows its changes while the scope lasts. Returns what it says at any moment. */
export const follow = Effect.fnUntraced(function*<A extends { readonly models: ReadonlyMap<string, unknown> }>(
  decoder: Decoder<A>
) {
  const file = yield* configured
  /** What was found at the last look; `undefined` where it could not be read. What is told of it is told once. */
  let text: string | undefined = yield* read(file)
  let { value: current } = yield* decodeText(file, text, decoder)
  const refresh = Effect.gen(function*() {
    const found = yield* Effect.result(read(file))
    const now = Result.isSuccess(found) ? found.success : undefined
    if (now === text) return
    text = now
    current = (yield* decodeText(file, yield* Effect.fromResult(found), decoder)).value
    yield* Effect.logInfo("catalogue reloaded", { file, models: current.models.size })
  }).pipe(
    Effect.catchTag(
      "CatalogueInvalid",
      (error) => Effect.logError("catalogue not reloaded, the old one stays", { detail: error.message })
    )
  )
  // a trace for every look would drown those of requests
  yield* refresh.pipe(Effect.withTracerEnabled(false), Effect.repeat(lookAgain), Effect.forkScoped)
  return (): A => current
})
