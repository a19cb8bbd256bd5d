/**
 * The stacks to compare. Each is ready when it is returned, and has its own NATS server if it needs one. All call the same
 * provider.
 */
import { ConfigProvider, type Duration, Effect, Exit, FileSystem, Layer, Path, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import type { Workload } from "../../shared/contract/Operation.ts"
import { ControlNats } from "../../shared/nats/Nats.ts"
import { KeyStore } from "../../shared/keys/KeyStore.ts"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import type { Running } from "./Processes.ts"
import { answers, freePort, start, startNode, startService } from "./Processes.ts"
import type { Row, StackName } from "./Rows.ts"
import { rows } from "./Rows.ts"
import type { Api } from "./Streams.ts"

/** The processes whose CPU time is counted separately. */
export type Role = "ingress" | "worker" | "nats" | "collector" | "provider"

export interface Stack {
  readonly name: StackName
  readonly url: string
  /** Headers of every request, besides the key. */
  readonly headers: Readonly<Record<string, string>>
  readonly key: string
  readonly pids: (workload: Workload) => Readonly<Partial<Record<Role, ReadonlyArray<number>>>>
}

/** The parts that all stacks share. */
export interface Ground {
  readonly logs: string
  readonly natsServer: string
  readonly providerUrl: string
  readonly provider: number
}

/** The load for readiness checks and for growth. */
export const firstRow: Row = rows[0]!

/** Waits until a stack answers a chat request. */
export const answersChat = (
  program: Running,
  stack: Pick<Stack, "url" | "headers" | "key">,
  options: { readonly body?: Row["body"]; readonly within?: Duration.Input } = {}
) =>
  answers(
    program,
    HttpClientRequest.post(`${stack.url}${firstRow.path}`).pipe(
      HttpClientRequest.setHeaders(stack.headers),
      HttpClientRequest.bearerToken(stack.key),
      HttpClientRequest.bodyJsonUnsafe(options.body ?? firstRow.body)
    ),
    options
  )

const isReady = (program: Running, port: number) =>
  answers(program, HttpClientRequest.get(`http://127.0.0.1:${port}/readyz`))

/** A temporary folder, which remains if the run fails. */
export const makeLogs = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.acquireRelease(
    fs.makeTempDirectory({ prefix: "gateway-bench-" }),
    (made, exit) => Exit.isSuccess(exit) ? Effect.ignore(fs.remove(made, { recursive: true })) : Effect.void
  )
})

/** A folder for logs, and the mock provider. */
export const startGround = Effect.fn("Stacks.startGround")(function*(natsServer: string) {
  const logs = yield* makeLogs
  const port = yield* freePort
  const provider = yield* startNode(logs, "provider", "test/bench/MockProvider.ts", { PORT: `${port}` })
  const providerUrl = `http://127.0.0.1:${port}`
  yield* answersChat(provider, { url: providerUrl, headers: {}, key: "none" })
  return { logs, natsServer, providerUrl, provider: provider.pid } satisfies Ground
})

export const startNats = Effect.fn("Stacks.startNats")(function*(
  ground: Pick<Ground, "logs" | "natsServer">,
  of: string
) {
  const path = yield* Path.Path
  const port = yield* freePort
  const monitorPort = yield* freePort
  const store = path.join(ground.logs, `${of}-nats`)
  const words = ["-a", "127.0.0.1", "-p", `${port}`, "-m", `${monitorPort}`, "-js", "-sd", store]
  const nats = yield* start(ground.logs, `${of}-nats`, [ground.natsServer, ...words], {})
  yield* answers(nats, HttpClientRequest.get(`http://127.0.0.1:${monitorPort}/healthz`))
  return { url: `nats://127.0.0.1:${port}`, pid: nats.pid }
})

export const startFloor = Effect.fn("Stacks.startFloor")(function*(ground: Ground) {
  const nats = yield* startNats(ground, "floor")
  const port = yield* freePort
  const env = { NATS_URL: nats.url, PORT: `${port}`, PROVIDER_URL: ground.providerUrl }
  const ingress = yield* startNode(ground.logs, "floor-ingress", "test/bench/floor/ingress.ts", env)
  const worker = yield* startNode(ground.logs, "floor-worker", "test/bench/floor/worker.ts", env)
  const stack: Stack = {
    name: "floor",
    url: `http://127.0.0.1:${port}`,
    headers: {},
    key: "none",
    pids: () => ({ ingress: [ingress.pid], worker: [worker.pid], nats: [nats.pid], provider: [ground.provider] })
  }
  yield* answersChat(ingress, stack)
  return stack
})

/** Limits that no request exceeds, so that requests are checked but never rejected. */
const limits = { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000_000, concurrentRequests: 100_000 }

/** Creates `count` new keys with these limits. */
const createKeys = Effect.fn("Stacks.createKeys")(function*(
  natsUrl: string,
  count: number,
  keyLimits: Partial<typeof limits>
) {
  const store = KeyStore.layer.pipe(
    Layer.provide(ControlNats.layer),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: natsUrl })))
  )
  return yield* Effect.flatMap(KeyStore, ({ create }) =>
    Effect.forEach(
      Array.from({ length: count }, (_, index) => `bench ${index}`),
      (name) => Effect.map(create({ name, ...keyLimits }), ({ secret }) => Redacted.value(secret)),
      { concurrency: 64 }
    )).pipe(Effect.provide(store))
})

/** A model of a catalogue, and its number of targets. */
export interface Model {
  readonly name: string
  readonly workload: Workload
  readonly targets?: number
  /** Default: `mock`. */
  readonly provider?: Api
}

const protocols: Readonly<Record<Api, string>> = {
  mock: "protocol: openai, baseUrl: ROOT/v1",
  responses: "protocol: openai, options: { apis: [responses] }, baseUrl: ROOT/v1",
  anthropic: "protocol: anthropic, baseUrl: ROOT",
  gemini: "protocol: gemini, baseUrl: ROOT/v1beta"
}

export const catalogueOf = ({ providerUrl }: Ground, models: ReadonlyArray<Model>): string => {
  const targets = (count: number, provider: Api) =>
    Array.from(
      { length: count },
      (_, index) => index === 0 ? `{ provider: ${provider} }` : `{ provider: ${provider}, model: m${index} }`
    )
  const model = ({ name, provider = "mock", targets: count = 1, workload }: Model) =>
    `  ${name}: { workload: ${workload}, targets: [${targets(count, provider).join(", ")}] }`
  return [
    "providers:",
    ...[...new Set(models.map(({ provider = "mock" }) => provider))].map((name) =>
      `  ${name}: { ${protocols[name].replace("ROOT", providerUrl)}, apiKey: "\${PROVIDER_KEY}", idempotent: true }`
    ),
    "models:",
    ...models.map(model),
    ""
  ].join("\n")
}

/** The models of the rows. */
const modelsOfRows = [
  ...new Map(rows.map(({ body: { model: name }, workload }) => [name, { name, workload }])).values()
]

interface GatewayOptions {
  readonly name: "gateway" | "sampled" | "untraced"
  readonly workloads: ReadonlyArray<Workload>
}

/** A gateway that can grow. */
export interface Gateway {
  readonly stack: Stack
  /** A stack of the same processes, for a key without limits. */
  readonly unlimited: Stack
  /** Replaces the gateway's models, and waits until it serves the last of them. */
  readonly serve: (models: ReadonlyArray<Model>) => ReturnType<typeof serveModels>
  /** Starts a worker and waits until it is ready. */
  readonly addWorker: (workload: Workload) => ReturnType<typeof startWorker>
  /** Creates keys and waits until ingress knows them. */
  readonly addKeys: (count: number) => ReturnType<typeof addKeysTo>
}

const serveModels = Effect.fn("Stacks.serveModels")(function*(
  ground: Ground,
  stack: Stack,
  ingress: Running,
  file: string,
  models: ReadonlyArray<Model>
) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFileString(`${file}.new`, catalogueOf(ground, models))
  yield* fs.rename(`${file}.new`, file)
  const body = { ...firstRow.body, model: models.at(-1)?.name ?? firstRow.body.model }
  yield* answersChat(ingress, stack, { body })
})

const addKeysTo = Effect.fn("Stacks.addKeys")(function*(
  stack: Stack,
  ingress: Running,
  natsUrl: string,
  count: number
) {
  const keys = yield* createKeys(natsUrl, count, limits)
  yield* answersChat(ingress, { ...stack, key: keys.at(-1) ?? stack.key })
  return keys
})

const startWorker = Effect.fn("Stacks.startWorker")(function*(
  logs: string,
  name: string,
  workload: Workload,
  env: Record<string, string>
) {
  const port = yield* freePort
  const worker = yield* startService(logs, name, workload, { ...env, HEALTH_PORT: `${port}` })
  yield* isReady(worker, port)
  return worker.pid
})

export const startGateway = Effect.fn("Stacks.startGateway")(function*(
  ground: Ground,
  { name, workloads }: GatewayOptions
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.promise(bundleServices)
  const nats = yield* startNats(ground, name)
  const port = yield* freePort
  const catalogue = path.join(ground.logs, `${name}.yaml`)
  yield* fs.writeFileString(catalogue, catalogueOf(ground, modelsOfRows))
  const env: Record<string, string> = {
    NATS_URL: nats.url,
    GATEWAY_CONFIG: catalogue,
    GATEWAY_SECRET: "only for this measurement on this machine"
  }
  const collectors: Array<number> = []
  if (name === "sampled") {
    env["OTEL_TRACES_SAMPLER"] = "parentbased_traceidratio"
    env["OTEL_TRACES_SAMPLER_ARG"] = "0.1"
  }
  if (name !== "untraced") {
    const collectorPort = yield* freePort
    const collector = yield* startNode(ground.logs, `${name}-collector`, "test/bench/CollectorStub.ts", {
      PORT: `${collectorPort}`
    })
    env["OTEL_EXPORTER_OTLP_ENDPOINT"] = `http://127.0.0.1:${collectorPort}`
    yield* answers(collector, HttpClientRequest.get(`http://127.0.0.1:${collectorPort}/`))
    collectors.push(collector.pid)
  }
  const healthPort = yield* freePort
  const ingress = yield* startService(ground.logs, `${name}-ingress`, "ingress", {
    ...env,
    PORT: `${port}`,
    HEALTH_PORT: `${healthPort}`
  })
  yield* isReady(ingress, healthPort)
  const workers = new Map<Workload, Array<number>>()
  const addWorker = (workload: Workload) => {
    const beside = workers.get(workload) ?? []
    workers.set(workload, beside)
    return startWorker(ground.logs, `${name}-${workload}-${beside.length}`, workload, { ...env, PROVIDER_KEY: "x" })
      .pipe(
        Effect.tap((pid) => Effect.sync(() => beside.push(pid)))
      )
  }
  for (const workload of workloads) yield* addWorker(workload)
  const [key = ""] = yield* createKeys(nats.url, 1, limits)
  const [unlimitedKey = ""] = yield* createKeys(nats.url, 1, {})
  const stack: Stack = {
    name,
    url: `http://127.0.0.1:${port}`,
    headers: {},
    key,
    pids: (workload) => ({
      ingress: [ingress.pid],
      worker: workers.get(workload) ?? [],
      nats: [nats.pid],
      collector: collectors,
      provider: [ground.provider]
    })
  }
  const unlimited: Stack = { ...stack, name: "unlimited", key: unlimitedKey }
  for (const each of [stack, unlimited]) yield* answersChat(ingress, each)
  return {
    stack,
    unlimited,
    serve: (models) => serveModels(ground, stack, ingress, catalogue, models),
    addWorker,
    addKeys: (count) => addKeysTo(stack, ingress, nats.url, count)
  } satisfies Gateway
})
