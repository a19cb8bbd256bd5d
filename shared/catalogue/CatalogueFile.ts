/** Reads a catalogue's file, reports its mistakes by line and follows its changes. */
import { Config, Effect, FileSystem, Option, Result, Schema } from "effect"
import { untilNext } from "../bounds/MonotonicClock.ts"
import * as SchemaErrors from "../contract/SchemaErrors.ts"
import type { Finding } from "./Inconsistencies.ts"
import { findLiteralSecrets } from "./LiteralSecrets.ts"
import * as YamlText from "./YamlText.ts"

export const Located = Schema.Struct({
  /** `null` for the whole file. */
  line: Schema.NullOr(Schema.Int),
  message: Schema.String
})
export type Located = typeof Located.Type

/** `FILE:LINE message`, as compilers write it. */
export const formatLocated = (file: string, { line, message }: Located): string =>
  line === null ? `${file}: ${message}` : `${file}:${line} ${message}`

/** The file cannot be read, or is not a valid catalogue. */
export class CatalogueInvalid extends Schema.TaggedError<CatalogueInvalid>()("CatalogueInvalid", {
  file: Schema.String,
  mistakes: Schema.NonEmptyArray(Located)
}) {
  override get message() {
    return this.mistakes.map((mistake) => formatLocated(this.file, mistake)).join("\n")
  }
}

/** Adds the line in the file to a message about a path. */
export type At = (path: ReadonlyArray<PropertyKey>, message: string) => Located

/** Decodes the value of a file, or a part of it. */
export type Decoder<A> = (value: unknown) => Result.Result<A, ReadonlyArray<Finding>>

/** A decoder that reports a schema's errors. */
export const decoderOf = <A>(schema: Schema.Codec<A, unknown>): Decoder<A> => {
  // an error: a misspelt field must not be ignored
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  return (value) => Result.mapError(decode(value), ({ issue }) => SchemaErrors.all(issue, value))
}

const decode = <A>(
  text: string,
  decoder: Decoder<A>
): Result.Result<{ readonly value: A; readonly at: At }, ReadonlyArray<Located>> =>
  Result.gen(function*() {
    const yaml = yield* YamlText.read(text)
    const at: At = (path, message) => ({
      line: yaml.lineOf(path),
      message: SchemaErrors.formatError({ path, message }, "the file")
    })
    const decoded = decoder(yaml.value)
    const literals = findLiteralSecrets(yaml.value)
    if (Result.isSuccess(decoded) && literals.length === 0) return { value: decoded.success, at }
    const known = new Set(literals.map(({ path }) => SchemaErrors.formatPath(path)))
    const others = Result.isFailure(decoded)
      ? decoded.failure.filter(({ path }) => !known.has(SchemaErrors.formatPath(path)))
      : []
    return yield* Result.fail([...literals, ...others].map(({ message, path }) => at(path, message)))
  })

/** Decodes a file's text. The error lists every mistake with its line and path, but no values of the file. */
export const decodeText = <A>(file: string, text: string, decoder: Decoder<A>) =>
  Effect.suspend(() => Effect.fromResult(decode(text, decoder))).pipe(
    Effect.mapError(([first = { line: null, message: "it is not valid YAML" }, ...others]) =>
      new CatalogueInvalid({ file, mistakes: [first, ...others] })
    )
  )

const unread = "cannot be read: check that it is a file and that this user may read it"

export const read = Effect.fn("CatalogueFile.read")(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(file).pipe(
    Effect.mapError(() => new CatalogueInvalid({ file, mistakes: [{ line: null, message: unread }] }))
  )
})

/** The path of the catalogue. */
export const catalogueFile = Config.String("GATEWAY_CONFIG").pipe(Config.withDefault("deploy/local/gateway.yaml"))

/** A value that changes when the file does; `undefined` without a file. Cheaper than reading the file, which takes four system calls. */
const stampOf = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(file)).pipe(
    Effect.map(({ ino, mode, mtime, size }) =>
      [Option.getOrNull(ino), mode, Option.getOrNull(mtime)?.getTime(), size].join()
    ),
    Effect.orElseSucceed(() => undefined)
  )

/** How often to check for changes, in milliseconds. A file watch would miss the swapped symbolic links of a ConfigMap. */
const pollMs = 2_000

/** Reads the configured file and follows its changes until the scope closes. Returns a getter of the current value. */
export const follow = Effect.fnUntraced(function*<A extends { readonly models: ReadonlyMap<string, unknown> }>(
  decoder: Decoder<A>
) {
  const file = yield* catalogueFile
  let stamp = yield* stampOf(file)
  /** The latest text, valid or not, so that each change is logged once; `undefined` if the file was unreadable. */
  let text: string | undefined = yield* read(file)
  let { value: current } = yield* decodeText(file, text, decoder)
  const refresh = Effect.gen(function*() {
    const latest = yield* stampOf(file)
    if (latest !== undefined && latest === stamp) return
    const found = yield* Effect.result(read(file))
    stamp = Result.isSuccess(found) ? latest : undefined
    const now = Result.isSuccess(found) ? found.success : undefined
    if (now === text) return
    text = now
    current = (yield* decodeText(file, yield* Effect.fromResult(found), decoder)).value
    yield* Effect.logInfo("catalogue reloaded", { file, models: current.models.size })
  }).pipe(
    Effect.catchTag(
      "CatalogueInvalid",
      (error) => Effect.logError("catalogue not reloaded, keeping the old one", { detail: error.message })
    )
  )
  // traces of each poll would drown out those of requests
  yield* Effect.andThen(untilNext(pollMs), refresh).pipe(
    Effect.withTracerEnabled(false),
    Effect.forever,
    Effect.forkScoped
  )
  return (): A => current
})
