/**
 * How a process shows NATS who it is, and checks whom it talks to.
 *
 * In production each service has an nkey of its own, to which the server's configuration gives no more rights than the
 * service needs (`Access.ts`).
 */
import type { Authenticator, ConnectionOptions } from "@nats-io/nats-core"
import { credsAuthenticator, nkeyAuthenticator, nkeys, usernamePasswordAuthenticator } from "@nats-io/nats-core"
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { readFileSync } from "node:fs"

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

/** The public key of a user's seed: `U` and 55 characters. */
export const publicKeyOf = (seed: Redacted.Redacted): Effect.Effect<string, CredentialsUnusable> =>
  Effect.try({
    try: () => nkeys.fromSeed(new TextEncoder().encode(Redacted.value(seed).trim())).getPublicKey(),
    catch: () => new CredentialsUnusable({ variable: "NATS_NKEY_SEED", detail: "is not an nkey seed" })
  }).pipe(
    Effect.filterOrFail(
      (key) => key.startsWith("U"),
      () => new CredentialsUnusable({ variable: "NATS_NKEY_SEED", detail: "is not the seed of a user" })
    )
  )

const settings = Config.all({
  user: Config.String("NATS_USER").pipe(Config.option),
  password: Config.Redacted("NATS_PASSWORD").pipe(Config.option),
  seed: Config.Redacted("NATS_NKEY_SEED").pipe(Config.option),
  creds: Config.String("NATS_CREDS").pipe(Config.option),
  caFile: Config.String("NATS_CA").pipe(Config.option),
  certFile: Config.String("NATS_CERT").pipe(Config.option),
  keyFile: Config.String("NATS_KEY").pipe(Config.option)
})

/**
 * Reads `NATS_NKEY_SEED`, or `NATS_CREDS` (a file with a user's JWT and seed), or `NATS_USER` and `NATS_PASSWORD`; and
 * for TLS the files `NATS_CA` (the authority that the server's certificate must be of) and, where the server asks for a
 * certificate, `NATS_CERT` and `NATS_KEY`. The files are read again at every connect, so that they can be renewed.
 */
export const options: Effect.Effect<
  Pick<ConnectionOptions, "authenticator" | "tls">,
  CredentialsUnusable | Config.ConfigError
> = Effect.gen(function*() {
  const { caFile, certFile, creds, keyFile, password, seed, user } = yield* settings
  const authenticator: Array<Authenticator> = []
  if (Option.isSome(seed)) {
    yield* publicKeyOf(seed.value)
    const bytes = new TextEncoder().encode(Redacted.value(seed.value).trim())
    authenticator.push(nkeyAuthenticator(bytes))
  }
  if (Option.isSome(creds)) {
    yield* requireFile("NATS_CREDS", creds.value)
    authenticator.push(credsAuthenticator(() => readFileSync(creds.value)))
  }
  if (Option.isSome(user)) {
    authenticator.push(
      usernamePasswordAuthenticator(user.value, Option.match(password, { onNone: () => "", onSome: Redacted.value }))
    )
  }
  const files = { NATS_CA: caFile, NATS_CERT: certFile, NATS_KEY: keyFile }
  for (const [variable, file] of Object.entries(files)) {
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
