/** LiteLLM's proxy from PyPI: one worker process with a master key, without a database. */
import { Effect, FileSystem, Path } from "effect"
import { freePort, start } from "../Processes.ts"
import { rows } from "../Rows.ts"
import type { Ground, Stack } from "../Stacks.ts"
import { answersChat } from "../Stacks.ts"
import { install, PeerMissing } from "./Peer.ts"

const version = "1.108.7"
const peer = `LiteLLM ${version}`
const key = "sk-only-for-this-measurement"

const config = (providerUrl: string, models: ReadonlyArray<string>): string =>
  [
    "model_list:",
    ...models.map((model) =>
      `  - { model_name: ${model}, litellm_params: { model: openai/${model}, api_base: ${providerUrl}/v1, api_key: none } }`
    ),
    `general_settings: { master_key: ${key} }`,
    ""
  ].join("\n")

export const startLiteLlm = Effect.fn("LiteLlm.start")(function*(ground: Ground) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.join(ground.logs, "litellm")
  const bin = path.join(folder, "bin")
  yield* install(peer, ["python3", "-m", "venv", folder], "1 minute")
  yield* install(peer, [path.join(bin, "pip"), "install", `litellm[proxy]==${version}`], "5 minutes")
  const file = path.join(folder, "config.yaml")
  const models = rows.filter(({ without }) => without?.includes("litellm") !== true).map(({ body }) => body.model)
  yield* fs.writeFileString(file, config(ground.providerUrl, [...new Set(models)]))
  const port = yield* freePort
  const words = ["--config", file, "--host", "127.0.0.1", "--port", `${port}`, "--num_workers", "1"]
  const gateway = yield* start(ground.logs, "litellm", [path.join(bin, "litellm"), ...words], {
    LITELLM_MODE: "PRODUCTION",
    LITELLM_LOG: "ERROR",
    // reads the table of prices from the package, not from the web
    LITELLM_LOCAL_MODEL_COST_MAP: "True"
  })
  const stack: Stack = {
    name: "litellm",
    url: `http://127.0.0.1:${port}`,
    headers: {},
    key,
    pids: () => ({ ingress: [gateway.pid], provider: [ground.provider] })
  }
  yield* answersChat(gateway, stack, { within: "2 minutes" }).pipe(
    Effect.mapError(({ message }) => new PeerMissing({ peer, reason: message }))
  )
  return stack
})
