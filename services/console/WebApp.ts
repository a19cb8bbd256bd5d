/**
 * Serves the built web app from memory. The files are read once at the start: no request path reaches the file system.
 */
import { Config, Context, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse, Mime } from "effect/http"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { isHealthPath } from "../../shared/telemetry/Health.ts"
import { contentSecurityPolicy, notFound } from "./access/SecurityHeaders.ts"

/** The folder holds no built web app. */
class NotBuilt extends Schema.TaggedError<NotBuilt>()("NotBuilt", { folder: Schema.String }) {
  override readonly message =
    `No web app in ${this.folder}. Build it with 'node services/console/build.ts', or set CONSOLE_WEB`
}

interface File {
  readonly type: string
  readonly bytes: Uint8Array
  readonly zipped: Uint8Array | undefined
}

/** Replaced by a fresh nonce in each response. */
const noncePlaceholder = "CSP_NONCE"

const isText = (type: string): boolean => /^text\/|javascript|json|svg/.test(type)

/** The file's name contains a hash of its content. */
const fileHeaders = { "cache-control": "public, max-age=31536000, immutable", vary: "accept-encoding" }

const page = (html: string) =>
  Effect.sync(() => {
    const nonce = randomBytes(16).toString("base64")
    return HttpServerResponse.text(html.replaceAll(noncePlaceholder, nonce), {
      contentType: "text/html; charset=utf-8",
      headers: { "content-security-policy": contentSecurityPolicy(nonce) }
    })
  })

export class WebFiles extends Context.Service<WebFiles, {
  readonly html: string
  /** Files by request path. */
  readonly files: ReadonlyMap<string, File>
}>()("services/console/WebFiles") {
  /** Reads `CONSOLE_WEB`: the folder of the built files (default `web/dist` beside this file). */
  static readonly layer = Layer.effect(
    WebFiles,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Config.String("CONSOLE_WEB").pipe(
        Config.withDefault(join(import.meta.dirname, "web", "dist"))
      )
      const read = Effect.gen(function*() {
        const files = new Map<string, File>()
        for (const name of yield* fs.readDirectory(join(folder, "assets"))) {
          const bytes = yield* fs.readFile(join(folder, "assets", name))
          const type = Option.getOrElse(Mime.getType(name), () => "application/octet-stream")
          files.set(`/assets/${name}`, { type, bytes, zipped: isText(type) ? gzipSync(bytes) : undefined })
        }
        return { files, html: yield* fs.readFileString(join(folder, "index.html")) }
      })
      return yield* read.pipe(Effect.mapError(() => new NotBuilt({ folder })))
    })
  )
}

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const { files, html } = yield* WebFiles
  yield* router.add(
    "GET",
    "/*",
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, url }) => {
      const name = url.split("?")[0] ?? ""
      const file = files.get(name)
      if (file !== undefined) {
        const zipped = /\bgzip\b/.test(headers["accept-encoding"] ?? "") ? file.zipped : undefined
        return Effect.succeed(HttpServerResponse.uint8Array(zipped ?? file.bytes, {
          contentType: file.type,
          headers: zipped === undefined ? fileHeaders : { ...fileHeaders, "content-encoding": "gzip" }
        }))
      }
      // the app itself routes single words; health paths must not answer a probe of this port
      if (/^\/[a-z-]*$/.test(name) && !isHealthPath(name)) return page(html)
      return Effect.succeed(notFound)
    })
  )
}))
