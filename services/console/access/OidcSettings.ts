/** Settings of sign-in with an OpenID provider. */
import { Config, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { hash } from "node:crypto"
import * as GroupRoles from "./GroupRoles.ts"
import * as PublicAddress from "./PublicAddress.ts"

/** A setting is missing or cannot be used. */
class OidcUnusable extends Schema.TaggedError<OidcUnusable>()("OidcUnusable", {
  variable: Schema.String,
  problem: Schema.String
}) {
  override readonly message = `${this.variable} ${this.problem}`
}

export interface Oidc {
  readonly issuer: URL
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
  /** Separated by spaces. */
  readonly scopes: string
  readonly groupsClaim: string
  readonly roles: GroupRoles.GroupRoles
  /** The console's URL in browsers. */
  readonly consoleUrl: URL
  /** The provider's name on the sign-in page. */
  readonly name: string
  /** SHA-256 of the settings that decide who may do what. Sessions that began under other settings are invalid. */
  readonly fingerprint: Uint8Array
}

const text = (variable: string) =>
  Config.String(variable).pipe(Config.withDefault(""), Effect.map((value) => value.trim()))

const required = Effect.fnUntraced(function*(variable: string) {
  const value = yield* text(variable)
  return value === "" ? yield* new OidcUnusable({ variable, problem: "must be set, as CONSOLE_OIDC_ISSUER is" }) : value
})

export class OidcSettings
  extends Context.Service<OidcSettings, Option.Option<Oidc>>()("services/console/access/OidcSettings")
{
  /** Reads `CONSOLE_OIDC_…` and `CONSOLE_PUBLIC_URL`; none without `CONSOLE_OIDC_ISSUER`. */
  static readonly layer = Layer.effect(
    OidcSettings,
    Effect.gen(function*() {
      const variable = "CONSOLE_OIDC_ISSUER"
      const given = yield* text(variable)
      if (given === "") return Option.none()
      const issuer = URL.parse(given)
      if (
        issuer === null ||
        !(issuer.protocol === "https:" || (issuer.protocol === "http:" && PublicAddress.isLoopback(issuer.host)))
      ) {
        return yield* new OidcUnusable({ variable, problem: "must be an https URL" })
      }
      const [consoleUrl] = yield* PublicAddress.configured
      if (consoleUrl === undefined) {
        return yield* new OidcUnusable({
          variable: "CONSOLE_PUBLIC_URL",
          problem: "must be set: the OpenID provider sends browsers back to it"
        })
      }
      const clientId = yield* required("CONSOLE_OIDC_CLIENT_ID")
      const clientSecret = Redacted.make(yield* required("CONSOLE_OIDC_CLIENT_SECRET"))
      const rolesText = yield* required("CONSOLE_OIDC_ROLES")
      const roles = yield* GroupRoles.parse(rolesText).pipe(
        Effect.mapError((problem) => new OidcUnusable({ variable: "CONSOLE_OIDC_ROLES", problem }))
      )
      const groupsClaim = (yield* text("CONSOLE_OIDC_GROUPS_CLAIM")) || "groups"
      return Option.some({
        issuer,
        clientId,
        clientSecret,
        scopes: (yield* text("CONSOLE_OIDC_SCOPES")) || "openid profile email",
        groupsClaim,
        roles,
        consoleUrl,
        name: (yield* text("CONSOLE_OIDC_NAME")) || "single sign-on",
        fingerprint: hash("sha256", JSON.stringify([issuer.href, clientId, groupsClaim, rolesText]), "buffer")
      })
    })
  )
}
