/** Secret tokens, compared in constant time. */
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { hash, timingSafeEqual } from "node:crypto"

/** A token is missing or too short. */
export class TokenUnusable extends Schema.TaggedError<TokenUnusable>()("TokenUnusable", { variable: Schema.String }) {
  override readonly message = `${this.variable} must be set to ${minimumLength} or more random characters`
}

export interface Token {
  readonly matches: (given: Redacted.Redacted) => boolean
  /** The SHA-256 of the token. */
  readonly fingerprint: Uint8Array
}

const minimumLength = 24

const digest = (text: string): Buffer => hash("sha256", text, "buffer")

/** Reads a token from an environment variable; none if it is unset or empty. */
export const configured = Effect.fnUntraced(function*(variable: string) {
  const text = yield* Config.Redacted(variable).pipe(Config.withDefault(Redacted.make("")), Effect.map(Redacted.value))
  if (text === "") return Option.none<Token>()
  if (text.length < minimumLength) return yield* new TokenUnusable({ variable })
  const fingerprint = digest(text)
  return Option.some<Token>({
    matches: (given) => timingSafeEqual(digest(Redacted.value(given)), fingerprint),
    fingerprint
  })
})
