/** LiteLLM's configuration becomes a catalogue, and whatever has no counterpart is reported. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { parse, stringify } from "yaml"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import { importCatalogue } from "../../../services/admin/litellm/ImportCatalogue.ts"
import { configText } from "../../fixture/litellm/LiteLlm.ts"

const environment: Readonly<Record<string, string>> = { FAKE_API_BASE: "http://127.0.0.1:9090/v1" }

const importText = (text: string) =>
  Effect.gen(function*() {
    const { findings, report, text: yaml, ...imported } = yield* importCatalogue("config.yaml", text, (name) =>
      environment[name])
    return {
      ...imported,
      yaml,
      report,
      findings: findings.all,
      catalogue: yield* Catalogue.parse("gateway.yaml", yaml)
    }
  })

/** Imports a configuration with these settings. */
const imported = (config: object) => importText(stringify(config))

/** A deployment of the model `m`. */
const deployment = (model: string, parameters: object = {}, model_info?: object, model_name = "m") => ({
  model_name,
  litellm_params: { model, ...parameters },
  ...(model_info === undefined ? {} : { model_info })
})

/** The provider and the model of a single deployment. */
const importOne = (model: string, parameters: object = {}, model_info?: object) =>
  Effect.map(imported({ model_list: [deployment(model, parameters, model_info)] }), (result) => ({
    ...result,
    model: result.catalogue.models.get("m"),
    provider: result.catalogue.providers.get(result.catalogue.models.get("m")?.targets[0].provider ?? "")
  }))

describe("providers", () => {
  const reached: ReadonlyArray<
    readonly [model: string, parameters: object, protocol: string, baseUrl: string, key?: string]
  > = [
    ["openai/gpt-5", {}, "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"],
    ["gpt-5", {}, "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"],
    ["claude-opus-4-5", {}, "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"],
    [
      "anthropic/x",
      { api_base: "https://proxy.example/v1/messages", api_key: "os.environ/K" },
      "anthropic",
      "https://proxy.example",
      "K"
    ],
    [
      "azure/eu",
      { api_base: "https://a.openai.azure.com/", api_key: "os.environ/A" },
      "openai",
      "https://a.openai.azure.com/openai/v1",
      "A"
    ],
    ["gemini/gemini-2.5-pro", {}, "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"],
    ["cohere_chat/command-r", {}, "cohere", "https://api.cohere.com", "COHERE_API_KEY"],
    ["cohere/rerank-v3.5", {}, "cohere", "https://api.cohere.com", "COHERE_API_KEY"],
    ["jina_ai/jina-reranker-v2", {}, "openai", "https://api.jina.ai/v1", "JINA_AI_API_KEY"],
    ["voyage/voyage-embed", {}, "openai", "https://api.voyageai.com/v1", "VOYAGE_API_KEY"],
    ["groq/llama", {}, "openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY"],
    ["mistral/mistral-large", {}, "openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"],
    ["fireworks_ai/llama", {}, "openai", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"],
    ["ollama/llama3", { api_base: "http://10.0.0.5:11434/" }, "openai", "http://10.0.0.5:11434/v1"],
    ["ollama_chat/llama3", {}, "openai", "http://127.0.0.1:11434/v1"],
    ["hosted_vllm/Qwen/Qwen3", { api_base: "http://vllm:8000/v1/chat/completions" }, "openai", "http://vllm:8000/v1"],
    [
      "Qwen/Qwen3",
      { custom_llm_provider: "openai", base_url: "http://v/v1", api_key: "os.environ/V" },
      "openai",
      "http://v/v1",
      "V"
    ],
    [
      "openai/x",
      { api_base: "os.environ/FAKE_API_BASE", api_key: "os.environ/F" },
      "openai",
      "http://127.0.0.1:9090/v1",
      "F"
    ]
  ]
  for (const [model, parameters, protocol, baseUrl, key] of reached) {
    it.effect(`${model} ${JSON.stringify(parameters)}`, () =>
      Effect.gen(function*() {
        const { provider } = yield* importOne(model, parameters)
        assert.deepStrictEqual([provider?.protocol, provider?.baseUrl], [protocol, baseUrl])
        assert.strictEqual(provider?.apiKey, key === undefined ? undefined : `\${${key}}`)
      }))
  }

  it.effect("names the model as the provider does", () =>
    Effect.gen(function*() {
      const name = (model: string) => Effect.map(importOne(model), ({ model }) => model?.targets[0].model)
      assert.strictEqual(yield* name("openrouter/qwen/qwen3"), "qwen/qwen3")
      assert.strictEqual(yield* name("fireworks_ai/llama"), "accounts/fireworks/models/llama")
      assert.strictEqual(yield* name("fireworks_ai/accounts/me/models/x"), "accounts/me/models/x")
    }))

  it.effect("replaces a literal key by a variable and prints it nowhere", () =>
    Effect.gen(function*() {
      const api_key = "sk-written-down-0123456789"
      const { catalogue, report, variables, yaml } = yield* imported({
        model_list: [
          deployment("openai/a", { api_key }, undefined, "a"),
          deployment("openai/b", { api_key }, undefined, "b"),
          deployment("openai/c", { api_key: "another" }, undefined, "c"),
          deployment("openai/d", { api_key: "os.environ/OPENAI_API_KEY_2" }, undefined, "d"),
          // LiteLLM reads OPENAI_API_KEY for it
          deployment("openai/e", {}, undefined, "e")
        ]
      })
      assert.deepStrictEqual(variables, ["OPENAI_API_KEY", "OPENAI_API_KEY_1", "OPENAI_API_KEY_2", "OPENAI_API_KEY_3"])
      assert.include(
        report.join("\n"),
        "model_list[0, 1].litellm_params.api_key: a literal key: give it to the workers as the variable OPENAI_API_KEY_1"
      )
      assert.deepStrictEqual(
        [...catalogue.providers.values()].map(({ apiKey }) => apiKey),
        ["${OPENAI_API_KEY_1}", "${OPENAI_API_KEY_3}", "${OPENAI_API_KEY_2}", "${OPENAI_API_KEY}"]
      )
      assert.notInclude(yaml + report.join("\n"), "written-down")
      assert.notInclude(yaml, "another")
    }))

  it.effect("gives a deployment with limits a provider of its own, and others one that they share", () =>
    Effect.gen(function*() {
      const { catalogue } = yield* imported({
        model_list: [
          deployment("openai/a", {}, undefined, "a"),
          deployment("openai/b", {}, undefined, "b"),
          deployment("openai/c", { rpm: 60, tpm: "20_000", max_parallel_requests: 4 }, undefined, "c"),
          deployment("openai/d", { rpm: 60, tpm: 20_000, max_parallel_requests: 4 }, undefined, "d")
        ]
      })
      assert.deepStrictEqual([...catalogue.providers.keys()], ["openai", "openai-c", "openai-d"])
      assert.deepStrictEqual(catalogue.providers.get("openai-c")?.limits, {
        concurrency: 4,
        requestsPerMinute: 60,
        tokensPerMinute: 20_000
      })
    }))

  it.effect("keeps timeouts, retries and pauses, of the deployment before those of all", () =>
    Effect.gen(function*() {
      const router_settings = { timeout: 90, stream_timeout: 0.5, num_retries: 9, retry_after: 2, cooldown_time: 30 }
      const { catalogue } = yield* imported({
        model_list: [
          deployment("openai/a", {}, undefined, "a"),
          deployment("openai/b", { timeout: 5, max_retries: 1, cooldown_time: 1 }, undefined, "b")
        ],
        router_settings
      })
      const [first, second] = [...catalogue.providers.values()]
      assert.deepStrictEqual(first?.timeouts, { firstByteMs: 90_000, idleMs: 500, totalMs: 90_000 })
      assert.deepStrictEqual([first?.retry?.times, first?.retry?.baseMs], [5, 2_000])
      assert.deepStrictEqual([first?.breaker?.openMs, first?.breaker?.maxOpenMs], [30_000, 30_000])
      assert.deepStrictEqual(second?.timeouts, { firstByteMs: 5_000, idleMs: 500, totalMs: 5_000 })
      assert.strictEqual(second?.retry?.times, 1)
      assert.deepStrictEqual([second?.breaker?.openMs, second?.breaker?.maxOpenMs], [1_000, 10_000])
    }))

  const refused: ReadonlyArray<readonly [string, object, string]> = [
    ["bedrock/anthropic.claude", {}, "@ai-sdk/amazon-bedrock"],
    ["vertex_ai/gemini-2.5-pro", {}, "@ai-sdk/google-vertex"],
    ["voyage/rerank-2.5", {}, "@ai-sdk/voyage"],
    ["openai/*", {}, "no wildcards"],
    ["my-own-model", {}, "states no known provider"],
    ["hosted_vllm/x", {}, "HOSTED_VLLM_API_BASE"],
    ["openai/x", { api_base: "os.environ/UNSET" }, "set the variable in `api_base`"],
    ["openai/x", { api_base: "http://user:pass@host/v1" }, "without user name, password"],
    ["openai/x", { litellm_credential_name: "gone" }, "no credential of this name"]
  ]
  for (const [model, parameters, expected] of refused) {
    it.effect(`reports ${model} ${JSON.stringify(parameters)}`, () =>
      Effect.gen(function*() {
        const { model: found, report } = yield* importOne(model, parameters)
        assert.isUndefined(found)
        assert.match(report.join("\n"), /^config\.yaml:2 model_list\[0\]: not imported: /)
        assert.include(report.join("\n"), expected)
      }))
  }
})

describe("models", () => {
  it.effect("order and weight become priorities and weights; a weight of 0 is a reserve", () =>
    Effect.gen(function*() {
      const { catalogue } = yield* imported({
        model_list: [
          deployment("openai/late"),
          deployment("openai/first", { order: 1, weight: 9 }),
          deployment("openai/second", { order: 1, weight: 3 }),
          deployment("openai/reserve", { order: 1, weight: 0 })
        ]
      })
      const targets = catalogue.models.get("m")?.targets.map((
        { model, priority = 0, weight = 1 }
      ) => [model, priority, weight])
      assert.deepStrictEqual(targets, [["first", 0, 3], ["second", 0, 1], ["reserve", 1, 1], ["late", 2, 1]])
    }))

  it.effect("without weights LiteLLM draws by rpm", () =>
    Effect.gen(function*() {
      const { catalogue } = yield* imported({
        model_list: [deployment("openai/a", { rpm: 900 }), deployment("openai/b", { rpm: 300 })]
      })
      assert.deepStrictEqual(catalogue.models.get("m")?.targets.map(({ weight }) => weight), [3, 1])
    }))

  it.effect("prices are per million, those of the configuration before those that LiteLLM knows", () =>
    Effect.gen(function*() {
      const own = yield* importOne("openai/gpt-4o", { input_cost_per_token: 0.000001 }, {
        output_cost_per_token: 0.000003,
        cache_read_input_token_cost: 1e-7
      })
      assert.deepStrictEqual(own.model?.price, { inputPerMillion: 1, outputPerMillion: 3, cachedPerMillion: 0.1 })
      assert.isAbove(
        (yield* importOne("azure/eu", { api_base: "https://a.openai.azure.com" }, { base_model: "azure/gpt-4o" })).model
          ?.price?.inputPerMillion ?? 0,
        0
      )
      assert.deepStrictEqual((yield* importOne("openai/unheard-of", {})).unpriced, ["m"])
    }))

  it.effect("the workload is that of the mode, or guessed from the name", () =>
    Effect.gen(function*() {
      const workload = (model: string, mode?: string) =>
        Effect.map(importOne(model, {}, mode === undefined ? undefined : { mode }), ({ model }) => model?.workload)
      assert.strictEqual(yield* workload("openai/x"), "chat")
      assert.strictEqual(yield* workload("openai/x", "embedding"), "embeddings")
      assert.strictEqual(yield* workload("openai/x", "audio_transcription"), "speech")
      assert.strictEqual(yield* workload("text-embedding-3-small"), "embeddings")
      assert.strictEqual(yield* workload("openai/gpt-image-1"), "images")
    }))

  it.effect("aliases are models with the same targets", () =>
    Effect.gen(function*() {
      const { catalogue } = yield* imported({
        model_list: [deployment("openai/a")],
        router_settings: { model_group_alias: { other: "m", hidden: { model: "m", hidden: true } } }
      })
      assert.deepStrictEqual(catalogue.models.get("other"), catalogue.models.get("m"))
      assert.isTrue(catalogue.models.has("hidden"))
    }))

  it.effect("fallbacks of one model, of all, and for long requests", () =>
    Effect.gen(function*() {
      const model = (name: string) => deployment(`openai/${name}`, {}, undefined, name)
      const { catalogue, report } = yield* imported({
        model_list: ["a", "b", "c", "d"].map(model),
        router_settings: { fallbacks: [{ a: ["b"] }], context_window_fallbacks: [{ a: ["c"] }] },
        litellm_settings: { default_fallbacks: ["d"] }
      })
      const fallbacks = [...catalogue.models].map(([name, { fallbacks }]) => [name, fallbacks])
      assert.deepStrictEqual(fallbacks, [["a", ["b", "c"]], ["b", ["d"]], ["c", ["d"]], ["d", undefined]])
      assert.include(report.join("\n"), "context_window_fallbacks[0].a[0]: imported for every failure")
    }))

  it.effect("two models that fall back to each other keep both ways", () =>
    Effect.gen(function*() {
      const { catalogue } = yield* imported({
        model_list: [
          deployment("openai/a", { order: 1 }, undefined, "a"),
          deployment("openai/b", { input_cost_per_token: 1e-6 }, undefined, "b")
        ],
        router_settings: { fallbacks: [{ a: ["b"] }, { b: ["a"] }] }
      })
      assert.deepStrictEqual(catalogue.models.get("a")?.fallbacks, ["b"])
      assert.deepStrictEqual(catalogue.models.get("b")?.targets.map(({ model, priority = 0 }) => [model, priority]), [[
        "b",
        0
      ], ["a", 1]])
    }))

  it.effect("a wrong type is an error that names line and field", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        importText("model_list:\n  - model_name: m\n    litellm_params: { model: openai/x, rpm: [1] }\n")
      )
      assert.match(error.message, /^config\.yaml:3 model_list\[0\]\.litellm_params\.rpm: must be a number/)
    }))
})

type Path = ReadonlyArray<string | number>

const leavesOf = (value: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => leavesOf(item, [...path, index]))
  if (typeof value !== "object" || value === null) return [path]
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, [...path, name]))
}

const changed = (value: unknown): unknown => {
  if (typeof value === "boolean") return !value
  return typeof value === "number" ? 0 : `x${String(value)}x`.replace(/^x(https?:\/\/)/, "$1x")
}

/** Whether it is one of the teams' models, which are alike. */
const isAlike = (index: number): boolean => index > 0 && index <= 35

/** The configuration with one of the teams' models, and another value at a path. */
const withChange = (path?: Path): string => {
  const config = parse(configText) as Record<string | number, unknown>
  if (path !== undefined) {
    let holder = config
    for (const key of path.slice(0, -1)) holder = holder[key] as Record<string | number, unknown>
    const last = path.at(-1) ?? ""
    holder[last] = changed(holder[last])
  }
  const models = config["model_list"] as ReadonlyArray<unknown>
  return stringify({ ...config, model_list: models.filter((_, index) => !isAlike(index)) })
}

describe("the example of LiteLLM's configuration", () => {
  it.effect("has more than 60 models, and no setting of it is silently ignored", () =>
    Effect.gen(function*() {
      const whole = yield* importText(configText)
      assert.isAbove(whole.catalogue.models.size, 60)
      const isReported = (path: Path) =>
        whole.findings.some((finding) => finding.path.every((key, index) => key === path[index]))
      const leaves = leavesOf(parse(configText)).filter(([section, index]) =>
        section !== "model_list" || !isAlike(Number(index))
      )
      assert.isAbove(leaves.length, 150)
      const ignored: Array<string> = []
      const outcomeOf = (text: string) =>
        Effect.map(
          Effect.result(importCatalogue("config.yaml", text, (name) => environment[name])),
          (result) => Result.isSuccess(result) ? [result.success.text, ...result.success.report].join("\n") : "rejected"
        )
      const usual = yield* outcomeOf(withChange())
      assert.notStrictEqual(usual, "rejected")
      for (const path of leaves.filter((path) => !isReported(path))) {
        if ((yield* outcomeOf(withChange(path))) === usual) ignored.push(path.join("."))
      }
      assert.deepStrictEqual(ignored, [])
    }))

  it.effect("contains secrets, none of which is printed", () =>
    Effect.gen(function*() {
      const { report, yaml } = yield* importText(configText)
      assert.notMatch(yaml + report.join("\n"), /written-down|a-password/)
    }))
})
