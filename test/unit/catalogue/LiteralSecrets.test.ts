/** Every process rejects a catalogue with literal secrets, and no message contains one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import * as Models from "../../../shared/catalogue/Models.ts"

const catalogueOf = (provider: object): string =>
  JSON.stringify({
    providers: { p: { protocol: "ai-sdk", ...provider } },
    models: { m: { workload: "chat", targets: [{ provider: "p" }] } }
  })

const packaged = (settings: object, more: object = {}) => ({
  options: { package: "@ai-sdk/openai", settings, ...more }
})

const secret = "s3cr3t-0123456789"

const literals: ReadonlyArray<readonly [path: string, provider: object]> = [
  ["apiKey", { apiKey: secret, ...packaged({}) }],
  ["apiKey", { apiKey: `sk-${secret}`, ...packaged({}) }],
  ["apiKey", { apiKey: `Bearer ${secret}`, ...packaged({}) }],
  ["options.settings.apiKey", packaged({ apiKey: secret })],
  ["options.settings.secretAccessKey", packaged({ region: "eu-central-1", secretAccessKey: secret })],
  ["options.settings.sessionToken", packaged({ sessionToken: secret })],
  [
    "options.settings.googleAuthOptions.credentials.private_key",
    packaged({
      googleAuthOptions: { credentials: { client_email: "a@b.example", private_key: secret } }
    })
  ],
  ["options.settings.headers.Authorization", packaged({ headers: { Authorization: secret } })],
  ["options.settings.headers.x-api-key", packaged({ headers: { "x-api-key": secret } })],
  ["options.settings.headers.X-Auth-Token", packaged({ headers: { "X-Auth-Token": secret } })],
  ["options.settings.headers.cookie", packaged({ headers: { cookie: secret } })],
  ["options.settings.headers.x-team", packaged({ headers: { "x-team": `Bearer ${secret}` } })],
  ["options.settings.list[1]", packaged({ list: ["a", `sk-${secret}`] })],
  ["options.settings.proxy", packaged({ proxy: `http://user:${secret}@proxy.example` })],
  ["options.settings.password", packaged({ password: 1234567890 })],
  [
    "options.providerOptions.openai.client_secret",
    packaged({}, { providerOptions: { openai: { client_secret: secret } } })
  ]
]

const expected = (path: string) =>
  `gateway.yaml:1 providers.p.${path}: must be a reference such as \${NAME} or \${file:/path}, not the secret itself`

describe("a catalogue", () => {
  it.effect.each(literals)(
    "with a literal secret as %s is rejected, and the message names only the field",
    ([path, provider]) =>
      Effect.gen(function*() {
        const text = catalogueOf(provider)
        const whole = yield* Effect.flip(Catalogue.parse("gateway.yaml", text))
        assert.strictEqual(whole.message, expected(path))
        // ingress does not use the field, but rejects it too
        const models = yield* Effect.flip(Models.parse("gateway.yaml", text))
        assert.strictEqual(models.message, expected(path))
      })
  )

  it.effect("never shows a secret in messages about other errors", () =>
    Effect.gen(function*() {
      for (
        const provider of [
          { protocol: secret },
          { apikey: secret },
          { apiKey: [secret] },
          { apiKey: { value: secret } },
          { baseUrl: secret },
          { baseUrl: `https://user:${secret}@api.example.com` },
          { redispatch: secret, apiKey: secret },
          { idempotent: secret, apiKey: secret }
        ]
      ) {
        const error = yield* Effect.flip(Catalogue.parse("gateway.yaml", catalogueOf(provider)))
        assert.notInclude(JSON.stringify(error), secret)
        assert.notInclude(error.message, secret)
      }
    }))

  it.effect("accepts references to secrets in every such field, and plain settings with similar names", () =>
    Effect.gen(function*() {
      const reference = "${NAME}"
      const { providers } = yield* Catalogue.parse(
        "gateway.yaml",
        catalogueOf({
          apiKey: "${file:/run/secrets/key}",
          ...packaged(
            { apiKey: reference, headers: { authorization: reference, "x-team": "platform" }, keyFilename: "/etc/key" },
            {
              providerOptions: { openai: { promptCacheKey: "tenants", maxTokens: 5, stopToken: "</s>" } },
              idempotencyHeader: "Idempotency-Key"
            }
          )
        })
      )
      assert.strictEqual(providers.size, 1)
    }))
})
