/** Startup errors of programs: plain words about the variable, the address or the file, without internals. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, FileSystem, Layer, Schema } from "effect"
import { createServer } from "node:http"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"

const read = (config: Config.Config<unknown>, value: string) =>
  Effect.asVoid(config.parse(ConfigProvider.fromUnknown({ NAME: value })))

const variables: ReadonlyArray<readonly [value: string, config: Config.Config<unknown>, says: string]> = [
  ["x", Config.Port("NAME"), "NAME must be a whole number from 1 to 65535"],
  ["0", Config.Port("NAME"), "NAME must be a whole number from 1 to 65535"],
  ["", Config.Int("NAME"), "NAME must be a whole number"],
  ["1.5", Config.schema(atLeast(1), "NAME"), "NAME must be a whole number of at least 1"],
  ["half", Config.Number("NAME"), "NAME must be a number"],
  ["nowhere", Config.URL("NAME"), "NAME must be an address such as https://example.com"],
  ["loud", Config.Literals(["info", "error"], "NAME"), "NAME must be \"info\" or \"error\""],
  [
    "x",
    Config.schema(Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 })), "NAME"),
    "NAME must be a number from 0 to 1"
  ]
]

describe("the startup message", () => {
  it.effect.each(variables)("reports the value %j of a variable", ([value, config, says]) =>
    Effect.gen(function*() {
      assert.strictEqual(startupMessage(yield* Effect.flip(read(config, value))), says)
    }))

  it.effect("reports a port that is in use", () =>
    Effect.gen(function*() {
      const port = yield* Effect.callback<number>((resume) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
          const address = server.address()
          resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
        })
        return Effect.sync(() => server.close())
      })
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(NodeHttpServer.layer(() => createServer(), { port, host: "127.0.0.1" })))
      )
      assert.strictEqual(
        startupMessage(error),
        `cannot listen at 127.0.0.1:${port}: this port is in use; stop the program that uses it, or set PORT or ` +
          "HEALTH_PORT to another"
      )
    }))

  const files = [
    ["/nowhere/seed.nk", "no such file or folder"],
    [`${import.meta.filename}/seed.nk`, "it cannot be used (ENOTDIR)"]
  ] as const
  it.effect.each(files)("reports an error of the file %s", ([file, says]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip((yield* FileSystem.FileSystem).readFileString(file))
      assert.strictEqual(startupMessage(error), `${file}: ${says}`)
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
