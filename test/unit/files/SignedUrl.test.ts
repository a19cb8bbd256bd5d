/** Signed URLs: valid for one file and for a limited time, and impossible to make without the secret. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SignedUrl } from "../../../shared/files/SignedUrl.ts"

const secret = "a secret of more than thirty-two characters"

const withSettings = (settings: Readonly<Record<string, string>>) =>
  Layer.fresh(SignedUrl.layer).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))))

const signed = (id: string, ttlMs: number) =>
  Effect.gen(function*() {
    const url = new URL(yield* (yield* SignedUrl).sign(id, ttlMs))
    return {
      url,
      expires: url.searchParams.get("expires") ?? "",
      signature: url.searchParams.get("signature") ?? ""
    }
  })

const verdict = (id: string, expires: string, signature: string) =>
  Effect.flatMap(SignedUrl, (urls) => urls.verify(id, expires, signature))

describe("a signed URL", () => {
  it.effect("is below the gateway's public root", () =>
    Effect.gen(function*() {
      for (
        const [root, base] of [
          ["https://models.example", "https://models.example/v1/results/a.png"],
          ["https://models.example/", "https://models.example/v1/results/a.png"],
          ["https://models.example/gateway/", "https://models.example/gateway/v1/results/a.png"]
        ] as const
      ) {
        const layer = withSettings({ GATEWAY_SECRET: secret, GATEWAY_PUBLIC_URL: root })
        const { url } = yield* signed("a.png", 1_000).pipe(Effect.provide(layer))
        assert.strictEqual(`${url.origin}${url.pathname}`, base)
      }
      const { url } = yield* signed("a.png", 1_000).pipe(Effect.provide(withSettings({ GATEWAY_SECRET: secret })))
      assert.strictEqual(url.origin, "http://127.0.0.1:8080")
    }))

  it.effect("is valid until it expires", () =>
    Effect.gen(function*() {
      const { expires, signature } = yield* signed("a.png", 60_000)
      assert.strictEqual(yield* verdict("a.png", expires, signature), "valid")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* verdict("a.png", expires, signature), "valid")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* verdict("a.png", expires, signature), "expired")
    }).pipe(Effect.provide(withSettings({ GATEWAY_SECRET: secret }))))

  it.effect("is valid for nothing else", () =>
    Effect.gen(function*() {
      const { expires, signature } = yield* signed("a.png", 60_000)
      assert.strictEqual(yield* verdict("b.png", expires, signature), "forged")
      assert.strictEqual(yield* verdict("a.png", String(Number(expires) + 1), signature), "forged")
      assert.strictEqual(yield* verdict("a.png", `${expires} `, signature), "forged")
      assert.strictEqual(yield* verdict("a.png", expires, ""), "forged")
      assert.strictEqual(yield* verdict("a.png", expires, signature.slice(0, -1)), "forged")
      assert.strictEqual(yield* verdict("a.png", "", ""), "forged")
      const stranger = withSettings({ GATEWAY_SECRET: secret.replace("a", "b") })
      assert.strictEqual(yield* verdict("a.png", expires, signature).pipe(Effect.provide(stranger)), "forged")
    }).pipe(Effect.provide(withSettings({ GATEWAY_SECRET: secret }))))

  it.effect("stays valid while its secret is listed, and is signed by the first", () =>
    Effect.gen(function*() {
      const next = secret.replace("a", "b")
      const both = withSettings({ GATEWAY_SECRET: `${next},${secret}` })
      const old = yield* signed("a.png", 60_000).pipe(Effect.provide(withSettings({ GATEWAY_SECRET: secret })))
      const fresh = yield* signed("a.png", 60_000).pipe(Effect.provide(both))
      const verdictBy = (layer: typeof both, { expires, signature }: typeof old) =>
        verdict("a.png", expires, signature).pipe(Effect.provide(layer))
      assert.strictEqual(yield* verdictBy(both, old), "valid")
      assert.strictEqual(yield* verdictBy(withSettings({ GATEWAY_SECRET: next }), fresh), "valid")
      assert.strictEqual(yield* verdictBy(withSettings({ GATEWAY_SECRET: next }), old), "forged")
    }))

  it.effect("needs a secret", () =>
    Effect.gen(function*() {
      for (const settings of [{}, { GATEWAY_SECRET: "short" }]) {
        const error = yield* Effect.flip(signed("a.png", 1_000).pipe(Effect.provide(withSettings(settings))))
        assert.strictEqual(error._tag, "SecretUnusable")
      }
    }))
})
