/**
 * Settings of a local start, from the environment.
 *
 * Relative paths start at the folder in which the user ran `npm start`, which npm passes as `INIT_CWD`.
 */
import { Config, Context, Effect, Layer, Option, Path, Schema } from "effect"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"

/** Why the gateway cannot start, and what to do. */
export class StartFailed extends Schema.TaggedError<StartFailed>()("StartFailed", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

export class Settings extends Context.Service<Settings, {
  /** `GATEWAY_PORT`: the port of the HTTP API, 1 to 65535. */
  readonly port: number
  /** `CONSOLE_PORT`: the port of the console, 1 to 65535. */
  readonly consolePort: number
  /** `CONSOLE_ADMIN_TOKEN`: the token for the console, at least 24 characters; generated if missing. */
  readonly adminToken: Option.Option<string>
  /** `NATS_URL`: use this server instead of starting one; separate the servers of a cluster by commas. */
  readonly natsUrl: Option.Option<string>
  /** `GATEWAY_CONFIG`: the catalogue file. */
  readonly catalogue: string
  /** `GATEWAY_DATA`: the state folder: streams, key, logs. */
  readonly data: string
  /** `GATEWAY_BOOTSTRAP_KEY`: a key that must exist after the start; generated if missing. */
  readonly bootstrapKey: Option.Option<string>
  /** `GATEWAY_SECRET`: the secret from which services derive keys, at least 32 characters; generated if missing. */
  readonly secret: Option.Option<string>
  /** `GATEWAY_PUBLIC_URL`: the gateway's root in URLs given to clients. */
  readonly publicUrl: Option.Option<string>
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`, or that of traces: the collector, instead of the console. */
  readonly collector: Option.Option<string>
  /** `GATEWAY_SERVICES`: the folder of the services' sources; tests use another than the project's. */
  readonly services: string
  /** The program of a service: its bundle, or its source if `GATEWAY_SERVICES` is set. */
  readonly programOf: (service: string) => string
  /** The project's folder. */
  readonly project: string
}>()("deploy/local/settings/Settings") {
  static readonly layer = Layer.effect(
    Settings,
    Effect.gen(function*() {
      const path = yield* Path.Path
      const project = path.join(import.meta.dirname, "../../..")
      const base = yield* Config.String("INIT_CWD").pipe(Config.withDefault(project))
      const file = (name: string, fallback: string) =>
        text(name).pipe(
          Config.map(Option.map((value) => path.resolve(base, value))),
          Config.map(Option.getOrElse(() => path.join(project, fallback)))
        )
      const services = yield* file("GATEWAY_SERVICES", "services")
      const isOwn = services === path.join(project, "services")
      return Settings.of({
        port: yield* Config.Port("GATEWAY_PORT").pipe(Config.withDefault(8080)),
        consolePort: yield* Config.Port("CONSOLE_PORT").pipe(Config.withDefault(8090)),
        adminToken: yield* text("CONSOLE_ADMIN_TOKEN"),
        natsUrl: yield* text("NATS_URL"),
        catalogue: yield* file("GATEWAY_CONFIG", "deploy/local/gateway.yaml"),
        data: yield* file("GATEWAY_DATA", ".gateway"),
        bootstrapKey: yield* text("GATEWAY_BOOTSTRAP_KEY"),
        secret: yield* text("GATEWAY_SECRET"),
        publicUrl: yield* text("GATEWAY_PUBLIC_URL"),
        collector: Option.firstSomeOf([
          yield* text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
          yield* text("OTEL_EXPORTER_OTLP_ENDPOINT")
        ]),
        services,
        // the bundle of this file is beside those of the services
        programOf: (service) =>
          isOwn
            ? path.join(path.dirname(import.meta.filename), `${service}.js`)
            : path.join(services, service, "main.ts"),
        project
      })
    }).pipe(Effect.mapError((error) => new StartFailed({ detail: startupMessage(error) })))
  )
}

/** Ignores empty variables. */
const text = (name: string) =>
  Config.String(name).pipe(Config.option, Config.map(Option.filter((value) => value.trim() !== "")))
