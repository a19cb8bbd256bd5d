/** Reads a catalogue's file, reports its mistakes by line and follows its changes. */
import { Config, Effect, FileSystem, Result, Schema } from "effect"
import * as SchemaErrors from "../contract/SchemaErrors.ts"
import type { Revision } from "./file/Agreement.ts"
import * as Follow from "./file/Follow.ts"
import type { Finding } from "./Inconsistencies.ts"
import { findLiteralSecrets } from "./LiteralSecrets.ts"
import * as YamlText from "./file/YamlText.ts"

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

/** Decodes a file's text. */
export const decode = <A>(
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

/** Reads the configured file and follows its changes until the scope closes. Returns a getter of the current value. */
export const follow = Effect.fnUntraced(function*<A extends { readonly models: ReadonlyMap<string, unknown> }>(
  decoder: Decoder<A>,
  revisionOf: (text: string) => Revision,
  check: (to: A, from: A) => Effect.Effect<ReadonlyArray<Finding>> = () => Effect.succeed([])
) {
  const file = yield* catalogueFile
  const current = yield* Follow.follow({
    file,
    read: read(file),
    decode: (text) => decodeText(file, text, decoder),
    revisionOf,
    check: Effect.fnUntraced(function*(to, from) {
      const [first, ...others] = (yield* check(to.value, from.value)).map(({ message, path }) => to.at(path, message))
      if (first !== undefined) return yield* new CatalogueInvalid({ file, mistakes: [first, ...others] })
    }),
    count: ({ value }) => value.models.size
  })
  return (): A => current().value
})
