/** What the guarded fetch accepts and rejects, with real servers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as undici from "undici"
import { type FetchOptions, GuardedFetch, isPublic } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { serving } from "../../../fixture/general/Serving.ts"

const fetchGuarded = (url: string, options?: FetchOptions) =>
  Effect.flatMap(GuardedFetch, (guard) => guard.fetch(url, options))

const refusal = (url: string, options?: FetchOptions) =>
  Effect.map(
    Effect.result(fetchGuarded(url, options)),
    (result) => Result.isFailure(result) ? result.failure.reason : "fetched"
  )

/** Allows this machine's own address, and resolves names by the table. */
const lenient = (names: Readonly<Record<string, ReadonlyArray<string>>> = {}): Layer.Layer<GuardedFetch> =>
  GuardedFetch.layerWith({
    isAllowed: (address) => address === "127.0.0.1" || isPublic(address),
    resolve: (hostname, done) => {
      const addresses = names[hostname]
      if (addresses === undefined) return done(new Error("no such name"), [])
      done(null, addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })))
    }
  })

describe("an address", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.31.255.255",
    "192.0.0.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "100::1"
  ])("%s is not public", (address) => {
    assert.isFalse(isPublic(address))
  })

  it.each(["1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.169.0.1", "223.255.255.255"])(
    "%s is public",
    (address) => {
      assert.isTrue(isPublic(address))
    }
  )

  it.each(["2606:4700:4700::1111", "2a00:1450:4001:80b::200e"])("%s is public", (address) => {
    assert.isTrue(isPublic(address))
  })
})

describe("the guard of production", () => {
  // resolved by the system, which no test can observe, and which may take long; RFC 6761 guarantees that the name does not exist
  it.live("rejects a name that does not exist", () =>
    Effect.gen(function*() {
      assert.include(["unreachable", "time"], yield* refusal("http://nowhere.invalid/a.png"))
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.live("does not even connect to a local server, in any notation of its address", () =>
    Effect.gen(function*() {
      const { connections, port } = yield* serving((_request, response) => response.end("secret"))
      const hosts = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]"
      ]
      for (const host of hosts) {
        assert.strictEqual(yield* refusal(`http://${host}:${port}/`), "address", host)
      }
      assert.strictEqual(connections(), 0)
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.effect("accepts only http and https, without credentials", () =>
    Effect.gen(function*() {
      for (const url of ["file:///etc/passwd", "ftp://example.com/a", "data:,x", "gopher://a", "nonsense", ""]) {
        assert.strictEqual(yield* refusal(url), "url", url)
      }
      assert.strictEqual(yield* refusal("http://user:secret@example.com/"), "url")
    }).pipe(Effect.provide(GuardedFetch.layer)))
})

describe("a guard that allows this machine", () => {
  it.live("returns the bytes and their media type", () =>
    Effect.gen(function*() {
      const { url } = yield* serving((_request, response) =>
        response.setHeader("content-type", "image/png").end(Buffer.from([1, 2, 3]))
      )
      const { bytes, mediaType } = yield* fetchGuarded(url)
      assert.deepStrictEqual([...bytes], [1, 2, 3])
      assert.strictEqual(mediaType, "image/png")
    }).pipe(Effect.provide(lenient())))

  it.live("connects to the address that it checked", () =>
    Effect.gen(function*() {
      const { port } = yield* serving((request, response) => response.end(request.headers.host))
      const { bytes } = yield* fetchGuarded(`http://pictures.example:${port}/`)
      assert.strictEqual(Buffer.from(bytes).toString(), `pictures.example:${port}`)
    }).pipe(Effect.provide(lenient({ "pictures.example": ["127.0.0.1"] }))))

  it.live("rejects a name if any of its addresses is not public", () =>
    Effect.gen(function*() {
      const { connections, port } = yield* serving((_request, response) => response.end("secret"))
      assert.strictEqual(yield* refusal(`http://mixed.example:${port}/`), "address")
      assert.strictEqual(connections(), 0)
    }).pipe(Effect.provide(lenient({ "mixed.example": ["127.0.0.1", "10.0.0.1"] }))))

  it.live("follows three redirects and no more", () =>
    Effect.gen(function*() {
      const { url } = yield* serving((request, response) => {
        const left = Number(request.url?.slice(1))
        if (left === 0) return response.end("there")
        response.writeHead(302, { location: `/${left - 1}` }).end()
      })
      assert.strictEqual(Buffer.from((yield* fetchGuarded(`${url}/3`)).bytes).toString(), "there")
      assert.strictEqual(yield* refusal(`${url}/4`), "redirects")
    }).pipe(Effect.provide(lenient())))

  it.live("checks the target of each redirect", () =>
    Effect.gen(function*() {
      const targets = ["http://10.0.0.1/", "http://[::1]/", "http://inside.example/", "file:///etc/passwd"]
      const { url } = yield* serving((request, response) =>
        response.writeHead(307, { location: targets[Number(request.url?.slice(1))] }).end()
      )
      assert.strictEqual(yield* refusal(`${url}/0`), "address")
      assert.strictEqual(yield* refusal(`${url}/1`), "address")
      assert.strictEqual(yield* refusal(`${url}/2`), "address")
      assert.strictEqual(yield* refusal(`${url}/3`), "url")
    }).pipe(Effect.provide(lenient({ "inside.example": ["192.168.0.1"] }))))

  it.live("stops at 20 MB, announced or not", () =>
    Effect.gen(function*() {
      const mebibyte = Buffer.alloc(1024 * 1024)
      const { url } = yield* serving((request, response) => {
        if (request.url === "/said") return void response.setHeader("content-length", 21 * 1024 * 1024).end()
        let sent = 0
        const more = () => {
          while (sent < 40) {
            sent++
            if (!response.write(mebibyte)) return void response.once("drain", more)
          }
          response.end()
        }
        more()
      })
      assert.strictEqual(yield* refusal(`${url}/said`), "size")
      assert.strictEqual(yield* refusal(`${url}/unsaid`), "size")
    }).pipe(Effect.provide(lenient())))

  it.live("accepts only status 200", () =>
    Effect.gen(function*() {
      const { url } = yield* serving((_request, response) => response.writeHead(404).end("no"))
      assert.strictEqual(yield* refusal(url), "status")
      assert.strictEqual(yield* refusal("http://127.0.0.1:1/"), "unreachable")
      assert.strictEqual(yield* refusal("http://nowhere.example/"), "unreachable")
    }).pipe(Effect.provide(lenient())))

  it.effect("gives up on a silent server after ten seconds, and closes the connection", () =>
    Effect.gen(function*() {
      const asked = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      const { url } = yield* serving((request) => {
        request.socket.once("close", () => closed.resolve())
        asked.resolve()
      })
      const fetching = yield* Effect.forkChild(refusal(url))
      yield* Effect.promise(() => asked.promise)
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(fetching.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(fetching), "time")
      yield* Effect.promise(() => closed.promise)
    }).pipe(Effect.provide(lenient())))
})

describe("a trusted provider origin", () => {
  /** A provider beside another server in the same private network. */
  const network = Effect.gen(function*() {
    const other = yield* serving((_request, response) => response.end("secret"))
    const provider = yield* serving((request, response) => {
      if (request.url === "/elsewhere") return response.writeHead(302, { location: other.url }).end()
      if (request.url === "/here") return response.writeHead(302, { location: "/file" }).end()
      response.end(`a file${request.headers.authorization ?? ""}`)
    })
    return { other, provider, trusted: { trusted: provider.url } }
  })

  it.live("serves results from any address", () =>
    Effect.gen(function*() {
      const { provider, trusted } = yield* network
      for (const path of ["/file", "/here"]) {
        assert.strictEqual(
          Buffer.from((yield* fetchGuarded(`${provider.url}${path}`, trusted)).bytes).toString(),
          "a file"
        )
      }
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.live("allows nothing else in that network: no other port, name or scheme, and no redirect", () =>
    Effect.gen(function*() {
      const { other, provider, trusted } = yield* network
      for (
        const url of [
          other.url,
          `http://localhost:${provider.port}/file`,
          `https://127.0.0.1:${provider.port}/file`,
          `${provider.url}/elsewhere`
        ]
      ) assert.strictEqual(yield* refusal(url, trusted), "address", url)
      assert.strictEqual(other.connections(), 0)
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.live("is enforced for clients that send requests themselves", () =>
    Effect.gen(function*() {
      const { other, provider } = yield* network
      const guard = yield* GuardedFetch
      const dispatcher = guard.dispatcher(provider.url)
      const get = (url: string) =>
        Effect.promise(() =>
          undici.fetch(url, { dispatcher }).then((answer) => answer.text(), (error: Error) => error.cause)
        )
      assert.strictEqual(yield* get(`${provider.url}/file`), "a file")
      for (const url of [other.url, `http://localhost:${other.port}/`, `${provider.url}/elsewhere`]) {
        assert.deepInclude(yield* get(url), { _tag: "FetchRefused", reason: "address" }, url)
      }
      assert.strictEqual(other.connections(), 0)
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.live("posts only to the trusted origin and public addresses, and follows no redirect", () =>
    Effect.gen(function*() {
      const { other, provider } = yield* network
      const guard = yield* GuardedFetch
      const post = (url: string) =>
        guard.post(url, { body: "{}", headers: {}, trusted: provider.url, withinMs: 5_000 }).pipe(
          Effect.catch(({ reason }) => Effect.succeed(reason))
        )
      assert.strictEqual(yield* post(`${provider.url}/file`), 200)
      assert.strictEqual(yield* post(`${provider.url}/elsewhere`), 302)
      assert.strictEqual(yield* post(other.url), "address")
      assert.strictEqual(yield* post("ftp://127.0.0.1"), "url")
      assert.strictEqual(other.connections(), 0)
    }).pipe(Effect.provide(GuardedFetch.layer)))

  it.live("accepts answers up to the given size", () =>
    Effect.gen(function*() {
      const { url } = yield* serving((_request, response) => response.end(Buffer.alloc(2_000)))
      const options = { trusted: url, maximumBytes: 2_000 }
      assert.lengthOf((yield* fetchGuarded(url, options)).bytes, 2_000)
      assert.strictEqual(yield* refusal(url, { ...options, maximumBytes: 1_999 }), "size")
    }).pipe(Effect.provide(GuardedFetch.layer)))
})
