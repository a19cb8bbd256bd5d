/** A process that cannot connect to NATS waits if the server may still come up, and exits if waiting cannot help. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Deferred, Effect, Fiber, Latch, Layer, Logger } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Nats } from "../../../shared/nats/Nats.ts"
import { writeCertificates } from "../../fixture/nats/Certificates.ts"
import { NatsServer, nextPort } from "../../fixture/nats/NatsServer.ts"

type Environment = Readonly<Record<string, string>>

/** Builds the layer, and keeps its log. */
const buildNats = (environment: Environment, layer: typeof Nats.layerPatient = Nats.layerPatient) => {
  const logged: Array<string> = []
  const nats = Layer.build(Layer.fresh(layer)).pipe(
    Effect.map((built) => Context.get(built, Nats)),
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown(environment)),
      Logger.layer([Logger.make(({ message }) => void logged.push(JSON.stringify(message)))])
    ])
  )
  return { nats, logged }
}

/** Listens as something other than a NATS server. Returns how to stop. */
const listen = (port: number, accept: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<() => void>((resume) => {
      const server = createServer(accept).listen(port, "127.0.0.1", () => resume(Effect.succeed(() => server.close())))
    }),
    (stop) => Effect.sync(stop)
  )

const certificates = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "certificates-"))
    writeCertificates(folder)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

describe("a service whose server is not up yet", () => {
  it.live("logs it once, without credentials, retries, and continues once the server is up", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { port } = new URL(server.url)
      yield* Effect.promise(() => server.stop())
      const { nats, logged } = buildNats({ NATS_URL: `nats://someone:secret@127.0.0.1:${port}` })
      const waiting = yield* Effect.forkScoped(nats)
      yield* Effect.scoped(Effect.gen(function*() {
        let tries = 0
        const thrice = yield* Latch.make()
        yield* listen(Number(port), (socket) => {
          socket.destroy()
          if (++tries === 3) thrice.openUnsafe()
        })
        yield* thrice.await
      }))
      yield* Effect.promise(() => server.restart())
      assert.isTrue((yield* Fiber.join(waiting)).isConnected())
      assert.deepStrictEqual(logged.map((line) => /waiting for NATS|NATS is available/.exec(line)?.[0]), [
        "waiting for NATS",
        "NATS is available"
      ])
      assert.include(logged[0], `NATS at nats://127.0.0.1:${port} cannot be used`)
    }))

  it.live("exits after NATS_WAIT_MS", () =>
    Effect.gen(function*() {
      const url = `nats://127.0.0.1:${nextPort()}`
      const { nats } = buildNats({ NATS_URL: url, NATS_WAIT_MS: "300" })
      assert.strictEqual(
        (yield* Effect.flip(nats)).message,
        `NATS at ${url} cannot be used (connection refused, for the 0.3 s of NATS_WAIT_MS): start a server there, or set ` +
          "NATS_URL to another"
      )
    }))

  it.live("does not wait if NATS_WAIT_MS is 0, or in a command", () =>
    Effect.gen(function*() {
      const url = `nats://127.0.0.1:${nextPort()}`
      const says =
        `NATS at ${url} cannot be used (connection refused): start a server there, or set NATS_URL to another`
      for (
        const { nats, logged } of [
          buildNats({ NATS_URL: url, NATS_WAIT_MS: "0" }),
          buildNats({ NATS_URL: url }, Nats.layer)
        ]
      ) {
        assert.strictEqual((yield* Effect.flip(nats)).message, says)
        assert.deepStrictEqual(logged, [])
      }
    }))

  it.live("exits at once on request, even if a silent server has accepted its connection", () =>
    Effect.gen(function*() {
      const port = nextPort()
      const accepted = yield* Deferred.make<Socket>()
      yield* listen(port, (socket) => void Deferred.doneUnsafe(accepted, Effect.succeed(socket)))
      const waiting = yield* Effect.forkScoped(buildNats({ NATS_URL: `nats://127.0.0.1:${port}` }).nats)
      const socket = yield* Deferred.await(accepted)
      yield* Fiber.interrupt(waiting)
      // the attempt to connect, which cannot be interrupted, has not failed by itself yet
      assert.isFalse(socket.resume().readableEnded)
    }))
})

describe("a service that gains nothing by waiting", () => {
  const ends = Effect.fnUntraced(function*(environment: Environment, says: RegExp) {
    const { nats, logged } = buildNats(environment)
    assert.match((yield* Effect.flip(nats)).message, says)
    assert.deepStrictEqual(logged, [])
  })

  it.live("exits at once if NATS_URL is not an address", () =>
    Effect.forEach(
      ["nats://a server:4222", "nats://127.0.0.1:99999"],
      (url) =>
        ends(
          { NATS_URL: url },
          /cannot be used \(invalid address\): set NATS_URL to an address such as nats:\/\/127.0.0.1:4222/
        )
    ))

  it.live("exits at once if another program listens there", () =>
    Effect.gen(function*() {
      const port = nextPort()
      yield* listen(port, (socket) => socket.end("220 mail ready\r\n"))
      yield* ends(
        { NATS_URL: `nats://127.0.0.1:${port}` },
        /\(unexpected response from server\): .* NATS_URL to another$/
      )
    }))

  it.live("exits at once if its credentials are rejected", () =>
    Effect.gen(function*() {
      const { url } = yield* NatsServer.make({ config: "authorization { user: someone, password: secret }" })
      const says =
        /\(Authorization Violation\): check that these credentials \(NATS_NKEY_SEED, NATS_CREDS or NATS_USER\) match/
      yield* ends({ NATS_URL: url }, says)
      yield* ends({ NATS_URL: url, NATS_USER: "someone", NATS_PASSWORD: "else" }, says)
    }))

  it.live("exits at once if messages of the usual size are too large for the server", () =>
    Effect.gen(function*() {
      const { url } = yield* NatsServer.make({ config: "max_payload: 512KB" })
      yield* ends({ NATS_URL: url }, /\(max_payload is 524288 bytes\): set it to 1MB or more/)
    }))

  it.live("exits at once if TLS cannot work", () =>
    Effect.gen(function*() {
      const folder = yield* certificates
      const tls = `tls { cert_file: "${join(folder, "server.pem")}", key_file: "${join(folder, "server.key")}" }`
      const [secure, open] = [yield* NatsServer.make({ config: tls }), yield* NatsServer.make()]
      yield* ends({ NATS_URL: secure.url }, /unable to verify.*: check NATS_CA, NATS_CERT and NATS_KEY$/)
      const trusting = { NATS_CA: join(folder, "ca.pem") }
      yield* ends(
        { NATS_URL: open.url, ...trusting },
        /does not support 'tls'.*: check NATS_CA, NATS_CERT and NATS_KEY$/
      )
      const own = { NATS_CERT: join(folder, "names"), NATS_KEY: join(folder, "names") }
      yield* ends(
        { NATS_URL: secure.url, ...trusting, ...own },
        /no start line\): check NATS_CA, NATS_CERT and NATS_KEY$/
      )
      assert.isTrue((yield* buildNats({ NATS_URL: secure.url, ...trusting }).nats).isConnected())
    }))
})

describe("a service in a cluster", () => {
  /** A server of this version, as far as a client can tell. `answer` returns its answer to each ping, which are counted from 1. */
  const playServer =
    (version: string, others: ReadonlyArray<string> = [], answer = (_: number) => "PONG\r\n") => (socket: Socket) => {
      const info = { server_id: "one", version, proto: 1, headers: true, max_payload: 1_048_576, connect_urls: others }
      let pings = 0
      socket.write(`INFO ${JSON.stringify(info)}\r\n`)
      socket.on("data", (bytes) => bytes.includes("PING") ? socket.write(answer(++pings)) : true)
    }

  it.live.each([["2.11.9", "3", true], ["2.12.0-RC.2", "3", false], ["2.11.9", "1", false]] as const)(
    "warns of servers that lose replicas: %s with %s of them",
    ([version, replicas, warns]) =>
      Effect.gen(function*() {
        const port = nextPort()
        yield* listen(port, playServer(version))
        const { logged, nats } = buildNats({ NATS_URL: `nats://127.0.0.1:${port}`, NATS_REPLICAS: replicas })
        yield* nats
        assert.strictEqual(logged.some((line) => line.includes("2.12.0 or newer") && line.includes(version)), warns)
      })
  )

  it.live("knows all of its servers, also those that were down when it started", () =>
    Effect.gen(function*() {
      // tried in any order
      const ports = Array.from({ length: 6 }, () => nextPort())
      yield* listen(ports[0]!, playServer("2.12.0"))
      const { nats } = buildNats({ NATS_URL: ports.map((port) => `nats://127.0.0.1:${port}`).join(", ") })
      const { connection } = yield* nats
      const known = connection.getServers().map(({ port }) => port)
      assert.deepStrictEqual(known.toSorted(), ports.toSorted())
    }))

  it.live("stays with a server that sends, although an answer waits behind other messages for more than a second", () =>
    Effect.gen(function*() {
      const [port, other] = [nextPort(), nextPort()]
      const outcome = yield* Deferred.make<string>()
      const answer = (ping: number): string => {
        if (ping === 4) Deferred.doneUnsafe(outcome, Effect.succeed("stayed"))
        return ping === 1 ? "PONG\r\n" : "MSG a 1 5\r\nhello\r\n"
      }
      yield* listen(port, playServer("2.12.0", [`127.0.0.1:${other}`], answer))
      yield* listen(other, () => Deferred.doneUnsafe(outcome, Effect.succeed("left")))
      yield* buildNats({ NATS_URL: `nats://127.0.0.1:${port}` }).nats
      assert.strictEqual(yield* Deferred.await(outcome), "stayed")
    }))
})
