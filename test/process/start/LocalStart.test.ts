/**
 * `npm start` with real processes and a real nats-server, but with stand-ins for the services, which can be made to die, to
 * hang or to refuse to stop.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { dirname, join } from "node:path"
import { Settings, StartFailed } from "../../../deploy/local/settings/Settings.ts"
import { Supervisor } from "../../../deploy/local/processes/Supervisor.ts"
import type { StoredSpan } from "../../../services/console/api/StoredSpan.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import {
  childrenOf,
  gateway,
  isAlive,
  makePlace,
  program,
  project,
  until,
  untilEnded
} from "../../fixture/gateway/LocalGateway.ts"

const child = (pid: number, name: string) => childrenOf(pid).get(name) ?? assert.fail(`no ${name} runs`)

const read = (...path: Array<string>) => readFileSync(join(...path), "utf8")

const lines = (...path: Array<string>) => read(...path).trim().split("\n")

/** Holds a port of the loopback address until the scope ends. */
const hold = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer().listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )

describe("npm start", () => {
  it.live("starts each service as its own process, prints how to use them, and stops them and nothing else on Ctrl-C", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const bystander = yield* program("nats-server", ["-a", "127.0.0.1", "-p", "-1"])
      yield* bystander.line(/Server is ready/)
      const started = yield* gateway(place.environment)
      yield* started.line(/^stop/)
      const curl = yield* started.line(/^curl/)
      assert.includeMembers([...started.lines], [
        `ready http://127.0.0.1:${place.port}`,
        `docs  http://127.0.0.1:${place.port}/docs`
      ])
      const key = /^key +(sk-gw-[0-9A-Za-z]{32})$/.exec(yield* started.line(/^key/))?.[1]
      assert.strictEqual(read(place.data, "ensured"), `${key}\n`)
      const children = childrenOf(started.pid)
      assert.deepStrictEqual([...children.keys()].toSorted(), ["chat", "ingress", "nats-server", "sh"])
      const answer = JSON.parse(execFileSync("sh", ["-c", curl], { encoding: "utf8" }))
      assert.deepInclude(answer, { url: "/v1/chat/completions", key: `Bearer ${key}` })
      assert.strictEqual(JSON.parse(answer.body).model, "local-chat")

      yield* started.signal("SIGINT")
      assert.strictEqual(yield* started.exited, 0)
      assert.deepStrictEqual([...children.values()].filter(isAlive), [])
      // the ingress stops first
      assert.strictEqual(read(place.data, "stopped"), "ingress SIGTERM\nchat SIGTERM\n")
      assert.isTrue(isAlive(bystander.pid))
      assert.strictEqual(started.lines.at(-1), "stopped")
    }))

  it.live("answers with the project's own services", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const started = yield* gateway({ ...place.environment, GATEWAY_SERVICES: undefined })
      const curl = yield* started.line(/^curl/)
      const answer = JSON.parse(execFileSync("sh", ["-c", curl], { encoding: "utf8" }))
      assert.strictEqual(answer.choices[0].message.role, "assistant")

      assert.include(started.lines, `admin http://127.0.0.1:${place.consolePort}`)
      const token = /^token ([\w-]{32})$/.exec(yield* started.line(/^token/))?.[1]
      assert.strictEqual(read(place.data, "admin-token"), `${token}\n`)
      assert.strictEqual(statSync(join(place.data, "admin-token")).mode & 0o777, 0o600)
      const address = `http://127.0.0.1:${place.consolePort}`
      const page = execFileSync("curl", ["-sS", address], { encoding: "utf8" })
      assert.include(page, "<title>Model Gateway</title>")
      const authorization = `Bearer ${token}`
      const keys = execFileSync("curl", ["-sS", `${address}/api/keys`, "-H", `authorization: ${authorization}`], {
        encoding: "utf8"
      })
      assert.include(keys, `"name":"local"`)

      // its trace is in the console, from ingress and worker
      const ask = async (path: string) => (await fetch(`${address}${path}`, { headers: { authorization } })).text()
      const traced = async () => {
        const [id = "none"] = /(?<="id":")[^"]+/.exec(await ask("/api/requests")) ?? []
        return ask(`/api/traces/${id}`)
      }
      const spans = yield* Effect.promise(() =>
        eventually(traced, (spans) => /"service":"ingress"/.test(spans) && /"service":"chat"/.test(spans))
      )
      const [event] = JSON.parse(yield* Effect.promise(() => ask("/api/requests")))
      assert.deepStrictEqual(
        new Set(JSON.parse(spans).map((span: StoredSpan) => span.traceId)),
        new Set([event.traceId])
      )
      for (const log of readdirSync(join(place.data, "logs"))) {
        assert.notInclude(read(place.data, "logs", log), "telemetry cannot be delivered")
        assert.notInclude(read(place.data, "logs", log), `${token}`)
      }

      const children = [...childrenOf(started.pid).values()]
      yield* started.signal("SIGINT")
      assert.strictEqual(yield* started.exited, 0)
      assert.deepStrictEqual(children.filter(isAlive), [])
    }))

  it.live("ends at once on a second Ctrl-C even if a service refuses to stop", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const started = yield* gateway({ ...place.environment, GATEWAY_STUBBORN: "1" })
      yield* started.line(/^ready/)
      const children = [...childrenOf(started.pid).values()]
      yield* started.signal("SIGINT")
      yield* started.line(/^stopping/)
      yield* started.signal("SIGINT")
      assert.strictEqual(yield* started.exited, 130)
      yield* Effect.forEach(children, untilEnded)
    }))

  it.live("reports a service that dies, with the end of its log, and restarts it", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const started = yield* gateway(place.environment)
      yield* started.line(/^ready/)
      const chat = child(started.pid, "chat")
      process.kill(chat, "SIGKILL")
      yield* started.line(/^chat died \(SIGKILL\), restarting it/)
      yield* started.line(/^chat is ready again$/)
      assert.notStrictEqual(child(started.pid, "chat"), chat)

      execFileSync("sh", ["-c", `curl -s http://127.0.0.1:${place.port}/crash || true`])
      yield* started.line(/^ingress died \(exit code 3\), restarting it/)
      yield* started.line(/^ {2}\| a last word$/)
      yield* started.line(/^ingress is ready again$/)

      process.kill(child(started.pid, "nats-server"), "SIGKILL")
      yield* started.line(/^nats-server is ready again$/)
    }))

  it.live("leaves nothing behind when it is killed itself, and starts again", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const killed = yield* gateway(place.environment)
      yield* killed.line(/^ready/)
      const children = [...childrenOf(killed.pid).values()]
      yield* killed.signal("SIGKILL")
      yield* Effect.forEach(children, untilEnded)
      assert.deepStrictEqual(lines(place.data, "stopped").toSorted(), ["chat parent gone", "ingress parent gone"])
      yield* (yield* gateway(place.environment)).line(/^ready/)
    }))

  it.live("ends only the nats-server that a killed start left behind on its store", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const store = join(place.data, "nats")
      mkdirSync(place.data)
      const left = yield* program("nats-server", ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", store])
      yield* left.line(/Server is ready/)
      writeFileSync(join(place.data, "nats-server.pid"), String(left.pid))
      const started = yield* gateway(place.environment)
      yield* started.line(/^ready/)
      yield* left.exited
      yield* started.signal("SIGTERM")
      yield* started.exited

      const other = yield* program("nats-server", ["-a", "127.0.0.1", "-p", "-1"])
      yield* other.line(/Server is ready/)
      writeFileSync(join(place.data, "nats-server.pid"), String(other.pid))
      yield* (yield* gateway(place.environment)).line(/^ready/)
      assert.isTrue(isAlive(other.pid))
    }))

  it.live("keeps its key and the secret of every service, and prefers those from the environment", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const start = (more: Record<string, string>) =>
        Effect.gen(function*() {
          const started = yield* gateway({ ...place.environment, ...more })
          yield* started.line(/^stop/)
          const key = /^key +(.*)$/.exec(yield* started.line(/^key/))?.[1]
          const answer = execFileSync("curl", ["-sS", `http://127.0.0.1:${place.port}/`], { encoding: "utf8" })
          yield* started.signal("SIGTERM")
          yield* started.exited
          return { key, ingress: JSON.parse(answer) as { readonly secret: string; readonly publicUrl: string } }
        })
      const first = yield* start({})
      const { publicUrl, secret } = first.ingress
      assert.match(secret, /^[\w-]{43}$/)
      assert.strictEqual(publicUrl, `http://127.0.0.1:${place.port}`)
      assert.strictEqual(read(place.data, "gateway-secret"), `${secret}\n`)
      assert.strictEqual(statSync(join(place.data, "gateway-secret")).mode & 0o777, 0o600)

      const given = {
        GATEWAY_BOOTSTRAP_KEY: `sk-gw-${"x".repeat(32)}`,
        GATEWAY_SECRET: "s".repeat(32),
        GATEWAY_PUBLIC_URL: "https://models.example/gw",
        CONSOLE_ADMIN_TOKEN: "t".repeat(24)
      }
      const other = yield* start(given)
      assert.strictEqual(other.key, given.GATEWAY_BOOTSTRAP_KEY)
      assert.deepInclude(other.ingress, { secret: given.GATEWAY_SECRET, publicUrl: given.GATEWAY_PUBLIC_URL })
      // only the console gets the token for its sign-in
      assert.notProperty(other.ingress, "token")

      const again = yield* start({})
      assert.deepStrictEqual(again, first)
      assert.deepStrictEqual(lines(place.data, "ensured"), [first.key, other.key, first.key])
    }))

  it.live("gives providers' keys only to the workers that call them", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const file = join(place.folder, "gateway.yaml")
      writeFileSync(
        file,
        JSON.stringify({
          providers: {
            openai: { protocol: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "${A_CHAT_KEY}" },
            painter: { protocol: "dashscope", baseUrl: "http://127.0.0.1:1", apiKey: "${AN_IMAGE_KEY}" }
          },
          models: {
            chat: { workload: "chat", targets: [{ provider: "openai" }] },
            image: { workload: "images", targets: [{ provider: "painter" }] }
          }
        })
      )
      const more = { GATEWAY_CONFIG: file, A_CHAT_KEY: "chat", AN_IMAGE_KEY: "image", SOME_OTHER_KEY: "other" }
      const started = yield* gateway({ ...place.environment, ...more })
      yield* started.line(/^stop/)
      const of = (service: string): Record<string, string> => JSON.parse(read(place.data, `environment-${service}`))
      assert.deepInclude(of("chat"), { A_CHAT_KEY: "chat", GATEWAY_CONFIG: file })
      assert.notProperty(of("chat"), "AN_IMAGE_KEY")
      const ingress = of("ingress")
      assert.deepInclude(ingress, { GATEWAY_CONFIG: file, PATH: process.env["PATH"] ?? "" })
      for (const name of ["A_CHAT_KEY", "AN_IMAGE_KEY", "SOME_OTHER_KEY"]) assert.notProperty(ingress, name)
    }))

  it.live("uses the server that NATS_URL names and does not stop it", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const server = yield* program("nats-server", [
        "-a",
        "127.0.0.1",
        "-p",
        "-1",
        "-js",
        "-sd",
        join(place.folder, "js")
      ])
      const port = /:(\d+)$/.exec(yield* server.line(/Listening for client connections/))?.[1]
      const started = yield* gateway({ ...place.environment, NATS_URL: `nats://127.0.0.1:${port}` })
      yield* started.line(/^ready/)
      assert.deepStrictEqual([...childrenOf(started.pid).keys()].toSorted(), ["chat", "ingress"])
      yield* started.signal("SIGINT")
      yield* started.exited
      assert.isTrue(isAlive(server.pid))
    }))

  const refusals: ReadonlyArray<{
    readonly title: string
    readonly change: (place: Effect.Success<typeof makePlace>) => Record<string, string>
    readonly says: RegExp
  }> = [
    {
      title: "a missing catalogue",
      change: () => ({ GATEWAY_CONFIG: "/nowhere/gateway.yaml" }),
      says:
        /^error: The catalogue \/nowhere\/gateway.yaml \(GATEWAY_CONFIG\) cannot be used: cannot be read: check that it is a file and that this user may read it$/
    },
    {
      title: "an invalid catalogue",
      change: ({ folder }) => {
        writeFileSync(join(folder, "gateway.yaml"), "providers: {}\nmodels:\n  x: { workload: tea, targets: [] }\n")
        return { GATEWAY_CONFIG: join(folder, "gateway.yaml") }
      },
      says:
        /^error: The catalogue .*gateway.yaml \(GATEWAY_CONFIG\) cannot be used: line 3: models.x.workload: .*; line 3: models.x.targets/
    },
    {
      title: "an invalid key",
      change: () => ({ GATEWAY_BOOTSTRAP_KEY: "secret" }),
      says: /^error: GATEWAY_BOOTSTRAP_KEY must be 32 letters or digits, after a prefix /
    },
    {
      title: "a secret that is too short",
      change: () => ({ GATEWAY_SECRET: "secret" }),
      says: /^error: GATEWAY_SECRET must be at least 32 characters$/
    },
    {
      title: "an admin token that is too short",
      change: () => ({ CONSOLE_ADMIN_TOKEN: "token" }),
      says: /^error: CONSOLE_ADMIN_TOKEN must be at least 24 characters$/
    },
    {
      title: "an invalid port",
      change: () => ({ GATEWAY_PORT: "http" }),
      says: /^error: GATEWAY_PORT must be a whole number from 1 to 65535$/
    },
    {
      title: "a NATS server that does not answer",
      change: () => ({ NATS_URL: "nats://user:secret@127.0.0.1:1" }),
      says: /^error: The NATS server at 127.0.0.1:1 cannot be reached \(ECONNREFUSED\)/
    }
  ]
  for (const { change, says, title } of refusals) {
    it.live(`rejects ${title} in one line`, () =>
      Effect.gen(function*() {
        const place = yield* makePlace
        const started = yield* gateway({ ...place.environment, ...change(place) })
        assert.strictEqual(yield* started.exited, 1)
        assert.lengthOf(started.lines, 1)
        assert.match(started.lines[0] ?? "", says)
      }))
  }

  it.live("rejects a port in use in one line before it starts anything", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      yield* hold(place.port)
      const started = yield* gateway(place.environment)
      assert.strictEqual(yield* started.exited, 1)
      assert.deepStrictEqual(started.lines, [
        `error: Port ${place.port} of 127.0.0.1 is already in use: set GATEWAY_PORT to another one`
      ])
      assert.deepStrictEqual(readdirSync(join(place.data, "logs")), [])
      assert.isFalse(existsSync(join(place.data, "supervisor.pid")))
    }))

  it.live("rejects one port for ingress and console", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      mkdirSync(join(place.folder, "services", "console"))
      writeFileSync(join(place.folder, "services", "console", "main.ts"), "")
      const started = yield* gateway({ ...place.environment, CONSOLE_PORT: String(place.port) })
      assert.strictEqual(yield* started.exited, 1)
      assert.deepStrictEqual(started.lines, [
        `error: CONSOLE_PORT and GATEWAY_PORT are both ${place.port}: set one to another port`
      ])
    }))

  it.live("beside another start rejects its state folder, and says how commands reach its own nats-server", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const first = yield* gateway(place.environment)
      yield* first.line(/^ready/)
      const rejected = yield* gateway(place.environment)
      assert.strictEqual(yield* rejected.exited, 1)
      assert.lengthOf(rejected.lines, 1)
      assert.match(rejected.lines[0] ?? "", new RegExp(`already running from .* \\(process ${first.pid}\\)`))
      assert.strictEqual(childrenOf(first.pid).size, 4)

      const second = yield* gateway((yield* makePlace).environment)
      const line = yield* second.line(/^starting nats-server/)
      assert.match(
        line,
        / at 127\.0\.0\.1:(\d+): set NATS_URL=nats:\/\/127\.0\.0\.1:\1 for `npm run keys` and other commands$/
      )
    }))

  it.effect("names a service that is not ready in time, with the end of its log", () =>
    Effect.gen(function*() {
      const place = yield* makePlace
      const log = join(place.data, "logs", "slow.log")
      mkdirSync(dirname(log), { recursive: true })
      const settings = Settings.of({
        ...{ bootstrapKey: Option.none(), catalogue: "", data: place.data, natsUrl: Option.none(), port: place.port },
        ...{
          secret: Option.none(),
          publicUrl: Option.none(),
          collector: Option.none(),
          adminToken: Option.none(),
          consolePort: place.consolePort
        },
        ...{ project, services: place.environment["GATEWAY_SERVICES"] ?? "", programOf: () => "" }
      })
      yield* Effect.gen(function*() {
        const supervisor = yield* Supervisor
        const slow = yield* supervisor.supervise({
          name: "slow",
          stopWithin: "5 seconds",
          launch: Effect.succeed({
            command: process.execPath,
            args: ["-e", `console.log("waiting for something"); setInterval(() => {}, 1000)`],
            environment: {},
            endsWithInput: true,
            isReady: new StartFailed({ detail: "not yet" })
          })
        })
        yield* until(() => existsSync(log) && read(log).includes("waiting")).pipe(TestClock.withLive)
        const outcome = yield* Effect.forkChild(Effect.flip(slow.ready))
        yield* TestClock.adjust("30 seconds")
        const error = yield* Fiber.join(outcome)
        assert.match(
          error.message,
          /^slow was not ready within 30 s; the end of .*slow.log:\n {2}\| waiting for something$/
        )
      }).pipe(
        Effect.provide(Supervisor.layer.pipe(
          Layer.provide(Layer.succeed(Settings, settings)),
          Layer.provide(NodeServices.layer)
        ))
      )
    }))
})
