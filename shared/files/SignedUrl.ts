/**
 * Signs and verifies URLs of results. With a signed URL, a client may download that file without an API key until the URL expires.
 *
 * The signature covers the file's id and the expiry time.
 */
import { Clock, Config, Context, Effect, Layer } from "effect"
import * as Signer from "../secrets/Signer.ts"

/** The path of results, below the gateway's public URL. */
export const resultsPath = "/v1/results/"

export type Verdict = "valid" | "expired" | "forged"

export class SignedUrl extends Context.Service<SignedUrl, {
  /**
   * The complete URL of a file, valid for `ttlMs` milliseconds, rounded up to a second. `path` is by default `resultsPath` and the id.
   */
  readonly sign: (id: string, ttlMs: number, path?: string) => Effect.Effect<string>
  /** Checks the `expires` and `signature` of a URL for that file. */
  readonly verify: (id: string, expires: string, signature: string) => Effect.Effect<Verdict>
}>()("shared/files/SignedUrl") {
  /**
   * Reads `GATEWAY_SECRET`, and `GATEWAY_PUBLIC_URL`: the gateway's URL for clients (default `http://127.0.0.1:8080`).
   */
  static readonly layer = Layer.effect(
    SignedUrl,
    Effect.gen(function*() {
      const signer = yield* Signer.make("signed-url")
      const root = yield* Config.URL("GATEWAY_PUBLIC_URL").pipe(Config.withDefault(new URL("http://127.0.0.1:8080")))
      const base = `${root.origin}${root.pathname.replace(/\/$/, "")}`
      const signedText = (id: string, expires: string) => `${id}\n${expires}`

      return SignedUrl.of({
        sign: (id, ttlMs, path = `${resultsPath}${encodeURIComponent(id)}`) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            const expires = String(Math.ceil((now + ttlMs) / 1_000))
            return `${base}${path}?expires=${expires}&signature=${signer.sign(signedText(id, expires))}`
          }),
        verify: (id, expires, signature) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            if (!signer.isSigned(signedText(id, expires), signature)) return "forged"
            return Number(expires) * 1_000 > now ? "valid" : "expired"
          })
      })
    })
  )
}
