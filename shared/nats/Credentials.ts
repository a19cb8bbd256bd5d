/**
 * How a process shows NATS who it is, and checks whom it talks to.
 *
 * In production each service has an nkey of its own for each account that it is in, to which the server's configuration
 * gives no more rights than the service needs (`Access.ts`).
 */
import type { Authenticator, ConnectionOptions } from "@nats-io/nats-core"
import { credsAuthenticator, nkeyAuthenticator, nkeys, usernamePasswordAuthenticator } from "@nats-io/nats-core"
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { readFileSync } from "node:fs"
import type { Account } from "./Storage.ts"

/** A credential or certificate cannot be used. */
export class CredentialsUnusable extends Schema.TaggedError<CredentialsUnusable>()("CredentialsUnusable", {
  variable: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.variable} ${this.detail}`
  }
}

/** A new identity: the seed stays with its service, the public key goes into the server's configuration. */
export const generate = Effect.sync(() => Redacted.make(new TextDecoder().decode(nkeys.createUser().getSeed())))

/** The public key of a user's seed: `U` and 55 characters. The variable is where the seed comes from. */
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
      () => new CredentialsUnusable({ variable, detail: "is not the seed of a user" })
    )
  )

/** The variables that say who the process is in each account. */
export const variables = {
  data: { seed: "NATS_NKEY_SEED", creds: "NATS_CREDS", user: "NATS_USER", password: "NATS_PASSWORD" },
  control: {
    seed: "NATS_CONTROL_NKEY_SEED",
    creds: "NATS_CONTROL_CREDS",
    user: "NATS_CONTROL_USER",
    password: "NATS_CONTROL_PASSWORD"
  }
} as const

const identity = (names: (typeof variables)[Account]) =>
  Config.all({
    seed: Config.Redacted(names.seed).pipe(Config.option),
    creds: Config.String(names.creds).pipe(Config.option),
    user: Config.String(names.user).pipe(Config.option),
    password: Config.Redacted(names.password).pipe(Config.option)
  })

const files = Config.all({
  caFile: Config.String("NATS_CA").pipe(Config.option),
  certFile: Config.String("NATS_CERT").pipe(Config.option),
  keyFile: Config.String("NATS_KEY").pipe(Config.option)
})

/** Who the process is in an account, and by which of the variables it was told; none where the server asks no one. */
const authentication = Effect.fnUntraced(function*(account: Account) {
  const names = variables[account]
  const { creds, password, seed, user } = yield* identity(names)
  const authenticators: Array<Authenticator> = []
  if (Option.isSome(seed)) {
    yield* publicKeyOf(seed.value, names.seed)
    const bytes = new TextEncoder().encode(Redacted.value(seed.value).trim())
    authenticators.push(nkeyAuthenticator(bytes))
  }
  if (Option.isSome(creds)) {
    yield* requireFile(names.creds, creds.value)
    authenticators.push(credsAuthenticator(() => readFileSync(creds.value)))
  }
  if (Option.isSome(user)) {
    authenticators.push(
      usernamePasswordAuthenticator(user.value, Option.match(password, { onNone: () => "", onSome: Redacted.value }))
    )
  }
  const given = { seed: Option.isSome(seed), creds: Option.isSome(creds), user: Option.isSome(user) }
  return { authenticators, kind: (["seed", "creds", "user"] as const).find((kind) => given[kind]) }
})

/** A process that is somebody in the data account has to be somebody in the control account too, or it would guess. */
const authenticatorsOf = Effect.fnUntraced(function*(account: Account) {
  const { authenticators } = yield* authentication(account)
  if (account === "data" || authenticators.length > 0) return authenticators
  const { kind } = yield* authentication("data")
  if (kind === undefined) return []
  return yield* new CredentialsUnusable({
    variable: variables.control[kind],
    detail: `is missing: ${variables.data[kind]} is for the account of the workers, which keys are not kept in. ` +
      "Set it to the identity in the control account; for a server with one account, to the same"
  })
})

/**
 * Reads `NATS_NKEY_SEED`, or `NATS_CREDS` (a file with a user's JWT and seed), or `NATS_USER` and `NATS_PASSWORD`, for the
 * control account the same with `NATS_CONTROL_`; and for TLS the files `NATS_CA` (the authority that the server's
 * certificate must be of) and, where the server asks for a certificate, `NATS_CERT` and `NATS_KEY`. The files are read again
 * at every connect, so that they can be renewed.
 */
export const options = Effect.fn("Credentials.options")(function*(account: Account): Effect.fn.Return<
  Pick<ConnectionOptions, "authenticator" | "tls">,
  CredentialsUnusable | Config.ConfigError
> {
  const authenticator = yield* authenticatorsOf(account)
  const { caFile, certFile, keyFile } = yield* files
  const named = { NATS_CA: caFile, NATS_CERT: certFile, NATS_KEY: keyFile }
  for (const [variable, file] of Object.entries(named)) {
    if (Option.isSome(file)) yield* requireFile(variable, file.value)
  }
  if (Option.isSome(certFile) !== Option.isSome(keyFile)) {
    return yield* new CredentialsUnusable({ variable: "NATS_CERT", detail: "and NATS_KEY are of use only together" })
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

/** A file that cannot be read would otherwise show as a connection that cannot be made. */
const requireFile = (variable: string, file: string): Effect.Effect<void, CredentialsUnusable> =>
  Effect.try({
    try: () => void readFileSync(file),
    catch: () => new CredentialsUnusable({ variable, detail: `names ${file}, which cannot be read` })
  })
