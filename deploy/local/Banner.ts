/** The text printed when the gateway is ready: addresses, the key, and commands to paste. */
import { Effect, Option, Path, Result } from "effect"
import { CommandLine } from "effect/process"
import type { Snapshot } from "../../shared/catalogue/Catalogue.ts"
import type { Workload } from "../../shared/contract/Operation.ts"
import { Settings } from "./settings/Settings.ts"

/** A request to try, for a model of that workload. */
interface Example {
  readonly workload: Workload
  readonly path: string
  readonly body: (model: string) => unknown
  /** The file for a binary answer. */
  readonly file?: string
}

/** The examples, in the order of printing. */
const examples: ReadonlyArray<Example> = [
  {
    workload: "chat",
    path: "/v1/chat/completions",
    body: (model) => ({ model, messages: [{ role: "user", content: "What is a model gateway?" }] })
  },
  {
    workload: "embeddings",
    path: "/v1/embeddings",
    body: (model) => ({ model, input: "One text, or several", dimensions: 8 })
  },
  {
    workload: "rerank",
    path: "/v1/rerank",
    body: (model) => ({ model, query: "Who keeps bees?", documents: ["A beekeeper", "A lighthouse keeper"] })
  },
  {
    workload: "images",
    path: "/v1/images/generations",
    body: (model) => ({ model, prompt: "A sailing boat on the sea at sunset", response_format: "url" })
  },
  {
    // returns a task to poll; once completed its `url` has the video
    workload: "video",
    path: "/v1/video/generations",
    body: (model) => ({ model, prompt: "A sailing boat on the sea at sunset", duration: 4, width: 640, height: 360 })
  },
  {
    workload: "speech",
    path: "/v1/audio/speech",
    body: (model) => ({ model, input: "Hello from your gateway.", voice: "nova" }),
    file: "hello.mp3"
  }
]

const curl = (url: string, key: string, body: unknown, file?: string) =>
  Result.getOrThrow(CommandLine.join([
    ...["curl", "-sS", url],
    ...["-H", `authorization: Bearer ${key}`],
    ...["-H", "content-type: application/json"],
    ...["-d", JSON.stringify(body)],
    ...(file === undefined ? [] : ["-o", file])
  ]))

/** A model of the workload, preferably a built-in one, which needs no provider key. */
const modelOf = ({ models, providers }: Snapshot, workload: Workload) => {
  const isBuiltIn = ({ provider }: { readonly provider: string }) => providers.get(provider)?.protocol === "local"
  const names = [...models].filter(([, model]) => model.workload === workload).map(([name]) => name)
  return names.find((name) => models.get(name)?.targets.every(isBuiltIn)) ?? names[0]
}

export const banner = Effect.fn("banner")(
  function*(key: Option.Option<string>, catalogue: Snapshot, adminToken: Option.Option<string>) {
    const path = yield* Path.Path
    const { consolePort, data, port } = yield* Settings
    const shown = Option.getOrElse(key, () => "YOUR_KEY")
    const address = `http://127.0.0.1:${port}`
    const requests = examples.flatMap((example) => {
      const model = modelOf(catalogue, example.workload)
      return model === undefined
        ? []
        : ["", curl(`${address}${example.path}`, shown, example.body(model), example.file)]
    })
    return [
      `ready ${address}`,
      `docs  ${address}/docs`,
      Option.match(key, {
        onSome: (key) => `key   ${key}`,
        onNone: () => "key   none: the first one was revoked and is not created again. Create one in the console"
      }),
      ...Option.match(adminToken, {
        onNone: () => [],
        onSome: (token) => [`admin http://127.0.0.1:${consolePort}`, `token ${token}`]
      }),
      `logs  ${path.join(data, "logs")}`,
      "stop  Ctrl-C",
      ...requests,
      ""
    ].join("\n")
  }
)
