/** Tokens in place of API keys, with real signatures and an issuer over HTTP: which are accepted, and what their owners may do. */
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Exit, Layer, Option, Result } from "effect"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, vi } from "vitest"
import { Models, type ModelSnapshot, parse } from "../../../shared/catalogue/Models.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { type Identity, principalOf } from "../../../shared/keys/Identity.ts"
import { KeyRefused, KeyRing } from "../../../shared/keys/KeyRing.ts"
import { defaults } from "../../../shared/keys/KeySettings.ts"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import * as PrincipalRecord from "../../../shared/keys/PrincipalRecord.ts"
import { idOf, Principals } from "../../../services/ingress/identity/Principals.ts"
import * as TokenKeys from "../../../services/ingress/identity/TokenKeys.ts"
import { audience, Issuer } from "../../fixture/identity/Issuer.ts"

/** Without NATS: the owners that were added. `Tokens.test.ts` has the bucket. */
const principalsOf = (added: Array<string>, write: Effect.Effect<void, JetStreamFailed>) =>
  Layer.succeed(Principals, {
    of: (identity, subject) => {
      const principal = principalOf(identity, subject)
      if (principal === undefined) return undefined
      const { match: _, ...settings } = principal
      const id = idOf(identity, subject)
      const key = { ...defaults, ...settings, id, owner: id, name: subject } as ApiKey
      return { key, issuer: identity.issuer, subject }
    },
    add: ({ issuer, subject }) => Effect.andThen(Effect.sync(() => void added.push(`${issuer} ${subject}`)), write),
    find: () => undefined
  })

const noKeys = Layer.succeed(KeyRing, {
  authenticate: () => Effect.fail(new KeyRefused({ reason: "unknown" })),
  find: () => Effect.fail(new KeyRefused({ reason: "unknown" })),
  isLoaded: () => true
})

/** `more` are fields of the identity in YAML. */
const gateway = Effect.fnUntraced(function*(
  more = "",
  keys = "",
  write: Effect.Effect<void, JetStreamFailed> = Effect.void
) {
  const issuer = yield* Issuer.make
  const added: Array<string> = []
  const textOf = (more: string) => `
identities:
  cluster:
    issuer: ${issuer.url}
    audience: ${audience}
    ${keys}
    ${more}
    principals:
      - { match: "system:serviceaccount:blue:*", requestsPerMinute: 60, allowedModels: [ours] }
      - { match: "system:serviceaccount:red:batch", disabled: true }
      - { match: "system:serviceaccount:teamed:*", team: team_a }
models:
  ours: { workload: chat }`
  let snapshot: ModelSnapshot = yield* parse("gateway.yaml", textOf(more))
  const edit = (more: string) =>
    Effect.map(parse("gateway.yaml", textOf(more)), (parsed) => {
      snapshot = parsed
    })
  const built = yield* Layer.build(TokenKeys.layer.pipe(Layer.provide([
    noKeys,
    principalsOf(added, write),
    Layer.succeed(Models, { current: () => snapshot })
  ])))
  const ring = Context.get(built, KeyRing)
  const refusalOf = (token: string) =>
    Effect.map(
      Effect.result(ring.authenticate(token)),
      (result) => Result.isFailure(result) ? result.failure.check ?? result.failure.reason : "accepted"
    )
  const accept = (token: Promise<string>) => Effect.flatMap(Effect.promise(() => token), ring.authenticate)
  const refuse = (token: Promise<string> | string) => Effect.flatMap(Effect.promise(async () => token), refusalOf)
  return { issuer, ring, accept, refuse, added, edit }
})

const pass = (milliseconds: number) =>
  Effect.sync(() => void vi.setSystemTime(DateTime.nowUnsafe().epochMilliseconds + milliseconds))

/** The path of a file that does not exist yet. */
const keyFile = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "keys-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  ),
  (folder) => join(folder, "keys.json")
)

const now = () => Math.floor(DateTime.nowUnsafe().epochMilliseconds / 1_000)

describe("a token", () => {
  // only the time of day: sockets and timers go on
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }))
  afterEach(() => void vi.useRealTimers())

  it.live("of the issuer has the settings of its owner", () =>
    Effect.gen(function*() {
      const { accept, added, issuer } = yield* gateway()
      const key = yield* accept(issuer.token())
      assert.deepInclude(key, {
        name: "system:serviceaccount:blue:chat",
        requestsPerMinute: 60,
        allowedModels: ["ours"]
      })
      assert.match(key.id, /^jwt_[\w-]{22}$/)
      assert.strictEqual(key.owner, key.id)
      assert.notInclude(key.id, "blue")
      const again = yield* accept(issuer.token({ jti: "another" }))
      assert.strictEqual(again.id, key.id, "of the same owner")
      const other = yield* accept(issuer.token({ sub: "system:serviceaccount:blue:other" }))
      assert.notStrictEqual(other.id, key.id)
      assert.include(added, `${issuer.url} system:serviceaccount:blue:other`)
    }))

  it.live("is verified once, and then known without a wait", () =>
    Effect.gen(function*() {
      const { issuer, ring } = yield* gateway()
      const token = yield* Effect.promise(() => issuer.token())
      const first = yield* ring.authenticate(token)
      const second = ring.authenticate(token)
      assert.isTrue(Exit.isExit(second))
      assert.deepStrictEqual(Exit.getSuccess(second as Exit.Exit<ApiKey, KeyRefused>), Option.some(first))
      assert.strictEqual(issuer.reads, 1)
    }))

  it.live("that is known is refused once it has expired", () =>
    Effect.gen(function*() {
      const { issuer, refuse, ring } = yield* gateway()
      const token = yield* Effect.promise(() => issuer.token())
      yield* ring.authenticate(token)
      yield* pass(640_000)
      assert.strictEqual(yield* refuse(token), "exp")
    }))

  it.live("whose owner cannot be recorded is accepted, unless its usage would be missing from a team", () =>
    Effect.gen(function*() {
      const failing = { fails: true }
      const write = Effect.suspend(() =>
        failing.fails ? Effect.fail(new JetStreamFailed({ detail: "no leader" })) : Effect.void
      )
      const { issuer, refuse } = yield* gateway("", "", write)
      const teamed = yield* Effect.promise(() => issuer.token({ sub: "system:serviceaccount:teamed:chat" }))
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      assert.strictEqual(yield* refuse(teamed), "unverifiable")
      failing.fails = false
      assert.strictEqual(yield* refuse(teamed), "accepted")
    }))

  const checks: ReadonlyArray<readonly [claims: Readonly<Record<string, unknown>>, check: string]> = [
    [{ aud: "another" }, "aud"],
    [{ aud: undefined }, "aud"],
    [{ aud: ["another", audience] }, "accepted"],
    [{ exp: undefined }, "exp"],
    [{ iat: undefined }, "iat"],
    [{ iss: "http://another" }, "iss"],
    [{ sub: undefined }, "claim"],
    [{ sub: "two words" }, "claim"],
    [{ sub: "system:serviceaccount:green:chat" }, "principal"],
    [{ sub: "system:serviceaccount:red:batch" }, "disabled"]
  ]
  for (const [claims, check] of checks) {
    it.live(`with ${JSON.stringify(claims, (_, value: unknown) => value ?? null)} is ${check}`, () =>
      Effect.gen(function*() {
        const { issuer, refuse } = yield* gateway()
        assert.strictEqual(yield* refuse(issuer.token(claims)), check)
      }))
  }

  it.live("has to be of its time, up to half a minute", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse(issuer.token({ iat: now() - 700, exp: now() - 100 })), "exp")
      assert.strictEqual(yield* refuse(issuer.token({ iat: now() - 700, exp: now() - 10 })), "accepted")
      assert.strictEqual(yield* refuse(issuer.token({ nbf: now() + 100 })), "nbf")
      assert.strictEqual(yield* refuse(issuer.token({ nbf: now() + 10 })), "accepted")
      assert.strictEqual(yield* refuse(issuer.token({ iat: now() + 100 })), "iat")
    }))

  it.live("lives for an hour at most", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse(issuer.token({ exp: now() + 3_600 })), "accepted")
      assert.strictEqual(yield* refuse(issuer.token({ exp: now() + 3_601 })), "lifetime")
    }))

  it.live("that lives longer needs an id, by which it can be revoked", () =>
    Effect.gen(function*() {
      const { edit, issuer, refuse } = yield* gateway("maxLifetimeSeconds: 86400")
      const exp = now() + 86_400
      assert.strictEqual(yield* refuse(issuer.token({ exp })), "jti")
      const token = yield* Effect.promise(() => issuer.token({ exp, jti: "one" }))
      assert.strictEqual(yield* refuse(token), "accepted")
      yield* edit("maxLifetimeSeconds: 86400\n    revoked: [one]")
      assert.strictEqual(yield* refuse(token), "revoked", "although it was known")
    }))

  it.live("needs a signature that only the issuer can make", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse(issuer.unsigned()), "alg")
      assert.strictEqual(yield* refuse(issuer.confused()), "alg")
      const token = yield* Effect.promise(() => issuer.token())
      const [head, , signature] = token.split(".")
      const body = Buffer.from(JSON.stringify(issuer.claims({ sub: "system:serviceaccount:blue:other" })))
      assert.strictEqual(yield* refuse(`${head}.${body.toString("base64url")}.${signature}`), "signature")
      yield* Effect.promise(() => issuer.rotate("first", { isPublished: false }))
      assert.strictEqual(yield* refuse(issuer.token()), "signature", "a key of the same name")
    }))

  it.live("may be signed by an elliptic curve", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      yield* Effect.promise(() => issuer.rotate("second", { alg: "ES256" }))
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
    }))

  it.live("by a new key has the keys read again, and by the old one is refused then", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      const old = yield* Effect.promise(() => issuer.token())
      const unseen = yield* Effect.promise(() => issuer.token({ jti: "unseen", exp: now() + 3_000 }))
      assert.strictEqual(yield* refuse(old), "accepted")
      yield* Effect.promise(() => issuer.rotate("second"))
      yield* pass(31_000)
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      assert.strictEqual(issuer.reads, 2)
      assert.strictEqual(yield* refuse(unseen), "kid")
    }))

  it.live("by an unknown key has the keys read twice a minute at most", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      yield* Effect.promise(() => issuer.rotate("forged", { isPublished: false }))
      yield* pass(31_000)
      const tokens = yield* Effect.promise(() =>
        Promise.all(Array.from({ length: 50 }, (_, at) => issuer.token({ jti: String(at) })))
      )
      const checks = yield* Effect.forEach(tokens, refuse, { concurrency: 50 })
      assert.deepStrictEqual(new Set(checks), new Set(["kid"]))
      assert.strictEqual(issuer.reads, 2)
    }))

  it.live("cannot be verified while the issuer has never been reached", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      issuer.isDown = true
      const token = yield* Effect.promise(() => issuer.token())
      assert.strictEqual(yield* refuse(token), "unverifiable")
      issuer.isDown = false
      assert.strictEqual(yield* refuse(token), "unverifiable", "the failure is not repeated for every request")
      yield* pass(2_100)
      assert.strictEqual(yield* refuse(token), "accepted")
    }))

  it.live("is verified by the former keys for a day while the issuer is down", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      issuer.isDown = true
      yield* pass(20 * 3_600_000)
      assert.strictEqual(yield* refuse(issuer.token({ jti: "later" })), "accepted")
      yield* pass(5 * 3_600_000)
      assert.strictEqual(yield* refuse(issuer.token({ jti: "too late" })), "unverifiable")
      issuer.isDown = false
      yield* pass(2_100)
      assert.strictEqual(yield* refuse(issuer.token({ jti: "again" })), "accepted")
    }))

  it.live("is verified by the former keys after an edit of the catalogue while the issuer is down", () =>
    Effect.gen(function*() {
      const { edit, issuer, refuse } = yield* gateway()
      const token = yield* Effect.promise(() => issuer.token())
      assert.strictEqual(yield* refuse(token), "accepted")
      issuer.isDown = true
      yield* edit("maxLifetimeSeconds: 900")
      assert.strictEqual(yield* refuse(token), "accepted")
      yield* edit("jwksUri: https://localhost:1/keys")
      assert.strictEqual(yield* refuse(token), "unverifiable", "keys from another place")
    }))

  it.live("may be verified by keys of a file, which is followed", () =>
    Effect.gen(function*() {
      const file = yield* keyFile
      const { issuer, refuse } = yield* gateway("", `jwksFile: ${file}`)
      const write = Effect.promise(async () => writeFile(file, JSON.stringify(await issuer.keySet())))
      assert.strictEqual(yield* refuse(issuer.token()), "unverifiable")
      yield* write
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      yield* Effect.promise(() => issuer.rotate("second"))
      yield* write
      yield* pass(11_000)
      assert.strictEqual(yield* refuse(issuer.token()), "accepted")
      assert.strictEqual(issuer.reads, 0)
    }))

  it.live("waits for a file that is being read for another token", () =>
    Effect.gen(function*() {
      const file = yield* keyFile
      const { issuer, refuse } = yield* gateway("", `jwksFile: ${file}`)
      const tokens = yield* Effect.promise(() =>
        Promise.all(Array.from({ length: 20 }, (_, at) => issuer.token({ jti: String(at) })))
      )
      const checks = Effect.map(Effect.forEach(tokens, refuse, { concurrency: 20 }), (all) => new Set(all))
      assert.deepStrictEqual(yield* checks, new Set(["unverifiable"]))
      yield* Effect.promise(async () => writeFile(file, JSON.stringify(await issuer.keySet())))
      assert.deepStrictEqual(yield* checks, new Set(["accepted"]))
    }))

  it.live("of no issuer, and what is no token, are refused without a look", () =>
    Effect.gen(function*() {
      const { issuer, refuse } = yield* gateway()
      assert.strictEqual(yield* refuse("sk-gw-0123456789abcdefghijABCDEFGHIJ01"), "unknown")
      assert.strictEqual(yield* refuse("eyJ.eyJ.eyJ"), "iss")
      assert.strictEqual(yield* refuse(`eyJ${"a".repeat(9_000)}.eyJ.eyJ`), "unknown")
      assert.strictEqual(issuer.reads, 0)
    }))
})

describe("an identity in the catalogue", () => {
  const mistakesIn = (fields: string) =>
    Effect.map(
      Effect.flip(parse("gateway.yaml", `identities:\n  a: ${fields}\n  b: ${fields}\nmodels: {}`)),
      ({ message }) => message
    )

  it.effect("has one source of keys that can be trusted, and an issuer of its own", () =>
    Effect.gen(function*() {
      const rest = "audience: us, principals: [{ match: \"*\" }]"
      assert.include(yield* mistakesIn(`{ issuer: https://a.test, ${rest} }`), "is that of another identity")
      assert.include(yield* mistakesIn(`{ issuer: http://a.test, ${rest} }`), "must be an https URL, unless")
      assert.include(yield* mistakesIn(`{ issuer: a, jwksUri: "http://a.test/keys", ${rest} }`), "https")
      assert.include(yield* mistakesIn(`{ issuer: a, jwksUri: "https://a.test", jwksFile: a, ${rest} }`), "remove it")
      assert.include(yield* mistakesIn("{ issuer: https://a.test, audience: us, principals: [] }"), "principals")
      const teamMistake = yield* mistakesIn(`{ issuer: https://a.test, team: search, ${rest} }`)
      assert.include(teamMistake, "the id of a team, such as team_")
    }))

  it("reads the record of an owner from before there were teams", () => {
    const record = { issuer: "https://a.test", subject: "a", firstSeen: 1 }
    assert.deepStrictEqual(
      PrincipalRecord.decode(JSON.stringify(record)),
      Option.some({ ...record, team: null })
    )
  })

  it("gives every owner an id that tells nothing", () => {
    const identity = { issuer: "https://a.test" } as Identity
    assert.notStrictEqual(idOf(identity, "a"), idOf(identity, "b"))
    assert.isTrue(idOf(identity, "a").startsWith(PrincipalRecord.prefix))
  })
})
