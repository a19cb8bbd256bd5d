/** The stored record of an owner of tokens, who has no API key: whom the owner's id stands for. */
import { Schema } from "effect"
import { TeamId, withDefault } from "./KeySettings.ts"

/** The prefix of the ids of such owners. */
export const prefix = "jwt_"

export const PrincipalRecord = Schema.Struct({
  issuer: Schema.String,
  /** The value of the claim that names the owner. */
  subject: Schema.String,
  /** The owner's team according to the catalogue. The process that counts usage reads it here, because it sees no tokens. */
  team: withDefault(Schema.NullOr(TeamId), null),
  /** Epoch milliseconds. */
  firstSeen: Schema.Finite
})
export type PrincipalRecord = typeof PrincipalRecord.Type

const Text = Schema.fromJsonString(PrincipalRecord)

export const decode = Schema.decodeUnknownOption(Text)
export const encode = Schema.encodeSync(Text)
