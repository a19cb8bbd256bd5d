/** Servers behind TLS may offer HTTP/2, which shares one connection between calls. Calls keep a connection each, as without TLS. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { writeCertificates } from "../../../fixture/nats/Certificates.ts"

/** A server with HTTP/2 and HTTP/1.1, trusted by this process. Returns its URL. */
const serve = (onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "https-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    writeCertificates(folder)
    const read = (name: string) => readFileSync(join(folder, name), "utf8")
    const trusted = getCACertificates()
    yield* Effect.acquireRelease(
      Effect.sync(() => setDefaultCACertificates([...trusted, read("ca.pem")])),
      () => Effect.sync(() => setDefaultCACertificates(trusted))
    )
    const server = createSecureServer(
      { allowHTTP1: true, cert: read("server.pem"), key: read("server.key") },
      onRequest
    )
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => {
        server.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () => Effect.sync(() => server.close())
    )
    return new URL(`https://localhost:${(server.address() as AddressInfo).port}`)
  })

/** Starts an answer, and gives it up as soon as its beginning is sent. */
const breakOff = (_: Http2ServerRequest, response: Http2ServerResponse): void => {
  response.writeHead(200, { "content-type": "audio/mpeg" })
  response.write("the beginning", () => {
    // HTTP/1.1 has no streams within a connection
    if (response.stream === undefined) response.destroy()
    else response.stream.close(8)
  })
}

const call = ({ origin }: URL) =>
  Effect.flatMap(Upstream, (upstream) =>
    upstream.exchange({
      ...{ provider: "secure", headers: [], firstByteMs: 10_000, idleMs: 10_000, totalMs: 10_000 },
      address: { origin, path: "/" },
      body: Buffer.from("the body")
    }, () => ({ onHead: () => {}, onData: () => {} })))

it.live("an answer that its server breaks off is not whole", () =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(call(yield* serve(breakOff)))
    assert.deepInclude(error, { _tag: "ProviderFailed", reason: "cut" })
  }).pipe(Effect.provide(Upstream.layer)))

it.live("a file that its server breaks off is not whole", () =>
  Effect.gen(function*() {
    const { origin } = yield* serve(breakOff)
    const guard = yield* GuardedFetch
    const error = yield* Effect.flip(guard.fetch(origin, { trusted: origin }))
    assert.strictEqual(error.reason, "unreachable")
  }).pipe(Effect.provide(GuardedFetch.layer)))

it.live("the connection of an abandoned call, which may be dead, serves no other call", () =>
  Effect.gen(function*() {
    const connections: Array<unknown> = []
    const hangs = yield* Deferred.make<void>()
    const url = yield* serve((request, response) => {
      connections.push(request.stream?.session ?? request.socket)
      if (connections.length === 1) Deferred.doneUnsafe(hangs, Effect.void)
      else response.end("ok")
    })
    const abandoned = yield* Effect.forkChild(call(url))
    yield* Deferred.await(hangs)
    yield* Fiber.interrupt(abandoned)
    yield* call(url)
    assert.lengthOf(new Set(connections), 2)
  }).pipe(Effect.provide(Upstream.layer)))
