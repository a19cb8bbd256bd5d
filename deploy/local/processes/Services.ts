/** Starts the gateway's services: each folder of `services` with a `main.ts`, except the admin commands. */
import { Effect, FileSystem, Option, Path, Scope } from "effect"
import { HttpClient } from "effect/http"
import type { Snapshot } from "../../../shared/catalogue/Catalogue.ts"
import * as Environment from "./Environment.ts"
import { freePort } from "../settings/Ports.ts"
import { Settings } from "../settings/Settings.ts"
import { nodeFlagsOf } from "../../../shared/process/NodeFlags.ts"
import { makeTracing } from "./Tracing.ts"
import { consoleService } from "./WebApp.ts"
import { Supervisor } from "./Supervisor.ts"
import type { Service } from "./Supervisor.ts"

/** The process with the HTTP API. */
const ingress = "ingress"

/** Settings shared by the services. */
export interface Shared {
  readonly natsUrl: string
  readonly secret: string
  readonly adminToken: string
  readonly hasConsole: boolean
  /** Decides which services get which providers' variables. */
  readonly catalogue: Snapshot
}

/** Probes a service's readiness, for at most two seconds. */
const probe = (client: HttpClient.HttpClient, port: number) =>
  HttpClient.filterStatusOk(client).get(`http://127.0.0.1:${port}/readyz`).pipe(
    Effect.flatMap((response) => response.text),
    Effect.timeout("2 seconds")
  )

/**
 * Starts the workers, then the ingress, and returns an effect that waits until all are ready. When the scope closes, the ingress
 * stops first, so that the workers can finish its requests; then all workers stop in parallel.
 */
export const startServices = Effect.fn("Services.start")(function*(shared: Shared) {
  const { adminToken, catalogue: snapshot, hasConsole, natsUrl, secret } = shared
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const client = yield* HttpClient.HttpClient
  const supervisor = yield* Supervisor
  const { catalogue, collector, consolePort, data, port, programOf, publicUrl, services } = yield* Settings
  const address = `http://127.0.0.1:${port}`

  /** Fixed ports. Each service also has a free port for health and metrics, which it logs. */
  const ports: Readonly<Record<string, number>> = { [ingress]: port, [consoleService]: consolePort }

  const tracing = hasConsole && Option.isNone(collector) ? makeTracing(consolePort, process.env) : () => ({})

  const describe = (name: string): Service => ({
    name,
    stopWithin: "10 seconds",
    launch: Effect.gen(function*() {
      const port = ports[name]
      const healthPort = yield* freePort()
      return {
        command: process.execPath,
        args: [...nodeFlagsOf(name), programOf(name)],
        environment: {
          ...Environment.ofService(name, snapshot, process.env),
          PORT: port === undefined ? undefined : String(port),
          HEALTH_PORT: String(healthPort),
          HEALTH_HOST: "127.0.0.1",
          HOST: "127.0.0.1",
          NATS_URL: natsUrl,
          GATEWAY_CONFIG: catalogue,
          GATEWAY_DATA: data,
          GATEWAY_SECRET: Environment.needsSecret(name) ? secret : undefined,
          GATEWAY_PUBLIC_URL: Option.getOrElse(publicUrl, () => address),
          ...(name === consoleService ? { CONSOLE_GATEWAY_URL: address, CONSOLE_ADMIN_TOKEN: adminToken } : {}),
          // the service stops when its standard input ends
          GATEWAY_PARENT_PIPE: "1",
          ...tracing(name)
        },
        endsWithInput: true,
        isReady: probe(client, healthPort)
      }
    })
  })

  const folders = yield* fs.readDirectory(services)
  const names = yield* Effect.filter(
    folders.toSorted().filter((name) => name !== "admin"),
    (name) => fs.exists(path.join(services, name, "main.ts"))
  )
  const workers = names.filter((name) => name !== ingress)
  const together = yield* Scope.fork(yield* Effect.scope, "parallel")
  const started = yield* Effect.forEach(workers, (name) => supervisor.supervise(describe(name))).pipe(
    Scope.provide(together)
  )
  started.push(yield* supervisor.supervise(describe(ingress)))
  return {
    names: [ingress, ...workers],
    ready: Effect.forEach(started, ({ ready }) => ready, { concurrency: "unbounded", discard: true })
  }
})
