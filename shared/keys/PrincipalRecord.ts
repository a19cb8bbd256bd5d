/** The stored record of the owner of tokens, who has no API key: whose id it is. */
import { Schema } from "effect"
import { TeamId, withDefault } from "./KeySettings.ts"

/** How the ids of such owners begin. */
export const prefix = "jwt_"

export const PrincipalRecord = Schema.Struct({
  issuer: Schema.String,
  /** The value of the claim that names the owner. */
  subject: Schema.String,
  /** The team that the catalogue gives the owner. The process that counts usage knows it from here: it sees no tokens. */
  team: withDefault(Schema.NullOr(TeamId), null),
  /** Epoch milliseconds. */
  firstSeen: Schema.Finite
})
export type PrincipalRecord = typeof PrincipalRecord.Type

const Text = Schema.fromJsonString(PrincipalRecord)

export const decode = Schema.decodeUnknownOption(Text)
export const encode = Schema.encodeSync(Text)
