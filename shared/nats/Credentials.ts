/**
 * The credentials and certificates with which a process connects to NATS.
 *
 * In production each service has its own nkey per account, and the server's configuration gives it only the rights that it
 * needs (`Access.ts`).
 */
import type { Authenticator, ConnectionOptions } from "@nats-io/nats-core"
import { credsAuthenticator, nkeyAuthenticator, nkeys, usernamePasswordAuthenticator } from "@nats-io/nats-core"
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { readFileSync } from "node:fs"
import type { Account } from "./Storage.ts"

/** A credential or certificate is unusable. */
export class CredentialsUnusable extends Schema.TaggedError<CredentialsUnusable>()("CredentialsUnusable", {
  variable: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.variable} ${this.detail}`
  }
}

/** Generates the seed of a new identity. The service keeps the seed; the server's configuration gets the public key. */
export const generate = Effect.sync(() => Redacted.make(new TextDecoder().decode(nkeys.createUser().getSeed())))

/** The public key of a user's seed: `U` and 55 characters. Errors name the variable or file from which the seed was read. */
export const publicKeyOf = (
  seed: Redacted.Redacted,
  variable = "NATS_NKEY_SEED"
): Effect.Effect<string, CredentialsUnusable> =>
  Effect.try({
    try: () => nkeys.fromSeed(new TextEncoder().encode(Redacted.value(seed).trim())).getPublicKey(),
    catch: () => new CredentialsUnusable({ variable, detail: "is not an nkey seed" })
  }).pipe(
    Effect.filterOrFail(
      (key) => key.startsWith("U"),
      () => new CredentialsUnusable({ variable, detail: "is not a user's seed" })
    )
  )

/** The environment variables of a process's identity in each account. */
export const variables = {
  data: { seed: "NATS_NKEY_SEED", creds: "NATS_CREDS", user: "NATS_USER", password: "NATS_PASSWORD" },
  control: {
    seed: "NATS_CONTROL_NKEY_SEED",
    creds: "NATS_CONTROL_CREDS",
    user: "NATS_CONTROL_USER",
    password: "NATS_CONTROL_PASSWORD"
  }
} as const

/** The process's identity in an account, and the kind of variable that sets it. No identity for a server without authentication. */
const authentication = Effect.fnUntraced(function*(account: Account) {
  const names = variables[account]
  const seed = yield* Config.Redacted(names.seed).pipe(Config.option)
  const creds = yield* Config.String(names.creds).pipe(Config.option)
  const user = yield* Config.String(names.user).pipe(Config.option)
  const password = yield* Config.Redacted(names.password).pipe(Config.withDefault(Redacted.make("")))
  const authenticators: Array<Authenticator> = []
  if (Option.isSome(seed)) {
    yield* publicKeyOf(seed.value, names.seed)
    authenticators.push(nkeyAuthenticator(new TextEncoder().encode(Redacted.value(seed.value).trim())))
  }
  if (Option.isSome(creds)) {
    yield* requireFile(names.creds, creds.value)
    authenticators.push(credsAuthenticator(() => readFileSync(creds.value)))
  }
  if (Option.isSome(user)) authenticators.push(usernamePasswordAuthenticator(user.value, Redacted.value(password)))
  const given = { seed: Option.isSome(seed), creds: Option.isSome(creds), user: Option.isSome(user) }
  return { authenticators, kind: (["seed", "creds", "user"] as const).find((kind) => given[kind]) }
})

/** A process with an identity in the data account needs one in the control account too. */
const authenticatorsOf = Effect.fnUntraced(function*(account: Account) {
  const { authenticators } = yield* authentication(account)
  if (account === "data" || authenticators.length > 0) return authenticators
  const { kind } = yield* authentication("data")
  if (kind === undefined) return []
  return yield* new CredentialsUnusable({
    variable: variables.control[kind],
    detail: `is missing: ${variables.data[kind]} is for the data account, which does not store keys. ` +
      "Set it to the identity in the control account, or to the same identity if the server has one account"
  })
})

/**
 * The credentials and TLS options for an account. Reads `NATS_NKEY_SEED`, or `NATS_CREDS` (a file with a user's JWT and seed), or
 * `NATS_USER` and `NATS_PASSWORD`; for the control account, the same with the prefix `NATS_CONTROL_`. For TLS, reads the files
 * `NATS_CA` (the authority of the server's certificate) and, if the server asks for a client certificate, `NATS_CERT` and `NATS_KEY`.
 * The files are read at every connect, so they can be renewed.
 */
export const options = Effect.fn("Credentials.options")(function*(account: Account): Effect.fn.Return<
  Pick<ConnectionOptions, "authenticator" | "tls">,
  CredentialsUnusable | Config.ConfigError
> {
  const authenticator = yield* authenticatorsOf(account)
  const caFile = yield* Config.String("NATS_CA").pipe(Config.option)
  const certFile = yield* Config.String("NATS_CERT").pipe(Config.option)
  const keyFile = yield* Config.String("NATS_KEY").pipe(Config.option)
  const named = { NATS_CA: caFile, NATS_CERT: certFile, NATS_KEY: keyFile }
  for (const [variable, file] of Object.entries(named)) {
    if (Option.isSome(file)) yield* requireFile(variable, file.value)
  }
  if (Option.isSome(certFile) !== Option.isSome(keyFile)) {
    return yield* new CredentialsUnusable({ variable: "NATS_CERT", detail: "and NATS_KEY must be set together" })
  }
  const tls = {
    ...(Option.isSome(caFile) ? { caFile: caFile.value } : {}),
    ...(Option.isSome(certFile) ? { certFile: certFile.value } : {}),
    ...(Option.isSome(keyFile) ? { keyFile: keyFile.value } : {})
  }
  return {
    ...(authenticator.length > 0 ? { authenticator } : {}),
    ...(Object.keys(tls).length > 0 ? { tls } : {})
  }
})

/** Checks that a file is readable. Otherwise an unreadable file would look like a failed connection. */
const requireFile = (variable: string, file: string): Effect.Effect<void, CredentialsUnusable> =>
  Effect.try({
    try: () => void readFileSync(file),
    catch: () => new CredentialsUnusable({ variable, detail: `names ${file}, which cannot be read` })
  })

/** The subject prefix for answers to a service's requests; no other service may subscribe to it. */
export const inboxPrefix = (service: string): string => `_INBOX.${service}`
