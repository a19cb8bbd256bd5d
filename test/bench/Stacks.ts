/**
 * What is compared: the floor, which is what the distributed shape costs at the least, and the gateway in full. Both
 * stand on the same NATS server and call the same provider, and both are ready when their scope hands them over.
 */
import { Effect, Exit, FileSystem, Path } from "effect"
import { HttpClientRequest } from "effect/http"
import { answers, BenchFailed, freePort, start, startNode } from "./Processes.ts"

/** The key that the load is sent with. It is known to nothing but the NATS server of one run. */
export const key = `sk-gw-${"bench".padEnd(32, "0")}`

export const completion = (stream: boolean) => ({
  model: "bench",
  messages: [
    { role: "system", content: "You answer in one sentence." },
    { role: "user", content: "What does a gateway in front of many model providers give a platform team?" }
  ],
  temperature: 0.2,
  max_tokens: 256,
  ...(stream ? { stream: true, stream_options: { include_usage: true } } : {})
})

export interface Stack {
  readonly name: "floor" | "gateway"
  /** Where completions are asked for. */
  readonly url: string
  readonly ingress: number
  readonly worker: number
}

export interface Ground {
  readonly logs: string
  readonly natsUrl: string
  readonly nats: number
  readonly providerUrl: string
  readonly provider: number
}

const post = (url: string) =>
  HttpClientRequest.post(url).pipe(
    HttpClientRequest.bearerToken(key),
    HttpClientRequest.bodyJsonUnsafe(completion(false))
  )

/** The NATS server and the mock provider. */
export const startGround = Effect.fn("Stacks.startGround")(function*(natsServer: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  // The logs outlive a run that failed.
  const directory = yield* Effect.acquireRelease(
    fs.makeTempDirectory({ prefix: "gateway-bench-" }),
    (made, exit) => Exit.isSuccess(exit) ? Effect.ignore(fs.remove(made, { recursive: true })) : Effect.void
  )
  const natsPort = yield* freePort
  const monitorPort = yield* freePort
  const providerPort = yield* freePort
  const nats = yield* start(directory, "nats", [
    natsServer,
    "-a",
    "127.0.0.1",
    "-p",
    `${natsPort}`,
    "-m",
    `${monitorPort}`,
    "-js",
    "-sd",
    path.join(directory, "nats")
  ], {})
  const provider = yield* startNode(directory, "provider", "test/bench/MockProvider.ts", { PORT: `${providerPort}` })
  const providerUrl = `http://127.0.0.1:${providerPort}`
  yield* answers(nats, HttpClientRequest.get(`http://127.0.0.1:${monitorPort}/healthz`))
  yield* answers(provider, post(`${providerUrl}/v1/chat/completions`))
  return {
    logs: directory,
    natsUrl: `nats://127.0.0.1:${natsPort}`,
    nats: nats.pid,
    providerUrl,
    provider: provider.pid
  } satisfies Ground
})

export const startFloor = Effect.fn("Stacks.startFloor")(function*(ground: Ground) {
  const port = yield* freePort
  const env = { NATS_URL: ground.natsUrl, PORT: `${port}`, PROVIDER_URL: ground.providerUrl }
  const ingress = yield* startNode(ground.logs, "floor-ingress", "test/bench/floor/ingress.ts", env)
  const worker = yield* startNode(ground.logs, "floor-worker", "test/bench/floor/worker.ts", env)
  const url = `http://127.0.0.1:${port}/v1/chat/completions`
  yield* answers(ingress, post(url))
  return { name: "floor", url, ingress: ingress.pid, worker: worker.pid } satisfies Stack
})

export const startGateway = Effect.fn("Stacks.startGateway")(function*(ground: Ground) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const port = yield* freePort
  const config = path.join(ground.logs, "gateway.yaml")
  yield* fs.writeFileString(
    config,
    `providers:
  mock: { protocol: openai, baseUrl: "${ground.providerUrl}/v1", apiKey: x, redispatch: always }
models:
  bench: { workload: chat, targets: [{ provider: mock }] }
`
  )
  const env = {
    NATS_URL: ground.natsUrl,
    GATEWAY_CONFIG: config,
    GATEWAY_SECRET: "only for this measurement, on this machine"
  }
  const admin = yield* start(
    ground.logs,
    "admin",
    [process.execPath, "services/admin/main.ts", "keys", "ensure", "--name", "bench"],
    { ...env, GATEWAY_BOOTSTRAP_KEY: key }
  )
  const exitCode = yield* admin.exitCode
  if (exitCode !== 0) {
    return yield* new BenchFailed({ reason: `creating the key failed with ${exitCode}, see ${admin.log}` })
  }
  const ingress = yield* startNode(ground.logs, "ingress", "services/ingress/main.ts", {
    ...env,
    PORT: `${port}`,
    HEALTH_PORT: `${yield* freePort}`
  })
  const worker = yield* startNode(ground.logs, "chat", "services/chat/main.ts", {
    ...env,
    HEALTH_PORT: `${yield* freePort}`
  })
  const url = `http://127.0.0.1:${port}/v1/chat/completions`
  yield* answers(ingress, post(url))
  return { name: "gateway", url, ingress: ingress.pid, worker: worker.pid } satisfies Stack
})
