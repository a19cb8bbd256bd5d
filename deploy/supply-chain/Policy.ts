/** Decisions about dependencies: `policy.yaml`. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { parse } from "yaml"

const Policy = Schema.Struct({
  licences: Schema.Struct({
    /** SPDX identifiers. */
    allowed: Schema.Array(Schema.NonEmptyString),
    /** Licences by package, or by the start of a package's name and `*`. */
    exceptions: Schema.Record(
      Schema.NonEmptyString,
      Schema.Struct({ licence: Schema.NonEmptyString, why: Schema.NonEmptyString })
    ),
    /** The libraries inside compiled packages, with their licences. */
    compiled: Schema.Record(Schema.NonEmptyString, Schema.NonEmptyString)
  }),
  /** Why each package of a `package.json` is there, by its name in that file. */
  reasons: Schema.Record(Schema.NonEmptyString, Schema.NonEmptyString),
  /** Why a direct dependency stays although it is deprecated or has had no release for long. */
  dormant: Schema.Record(Schema.NonEmptyString, Schema.NonEmptyString)
})
export type Policy = typeof Policy.Type

export const read = (): Policy =>
  Schema.decodeUnknownSync(Policy, { onExcessProperty: "error" })(
    parse(readFileSync(join(import.meta.dirname, "policy.yaml"), "utf8"))
  )
