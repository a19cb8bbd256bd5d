/** LiteLLM's provider prefixes, and how the gateway reaches each: protocol, base URL, key and workloads. */
import type { Provider } from "../../../shared/catalogue/Provider.ts"
import type { Workload } from "../../../shared/contract/Operation.ts"

export interface Vendor {
  readonly protocol: Provider["protocol"]
  /** Missing if every deployment must state its own. */
  readonly baseUrl?: string
  /** The environment variable that LiteLLM reads the base URL from. */
  readonly baseUrlVariable?: string
  /** The catalogue's `baseUrl` from LiteLLM's `api_base`, if they differ. */
  readonly toBaseUrl?: (apiBase: string) => string
  /** The environment variables that LiteLLM reads the key from. Missing if the provider needs no key. */
  readonly keys?: ReadonlyArray<string>
  readonly workloads: ReadonlyArray<Workload>
  /** The provider's name of a model, if it differs from the one after LiteLLM's prefix. */
  readonly toModel?: (model: string) => string
  readonly options?: Readonly<Record<string, unknown>>
  /** How to reach the workloads that `workloads` lacks. */
  readonly otherwise?: Vendor
}

const openAiWorkloads = ["chat", "embeddings", "images", "speech"] as const

/** For servers that accept the limit of output tokens only by its older name. */
const olderLimit = { options: { maxTokensField: "max_tokens" } }

const without = (url: string, ending: RegExp): string => url.replace(/\/+$/, "").replace(ending, "")

/** Removes the path of an operation, which some configurations include. */
const withoutPath = (url: string): string => without(url, /\/(?:chat\/completions|completions|embeddings|rerank)$/)

/** A server of OpenAI's dialect. */
const openAi = (
  baseUrl: string,
  key: string | ReadonlyArray<string>,
  workloads: ReadonlyArray<Workload> = ["chat", "embeddings"],
  more: Partial<Vendor> = {}
): Vendor => ({ protocol: "openai", baseUrl, keys: [key].flat(), toBaseUrl: withoutPath, workloads, ...more })

/** A server that the operator runs, at the deployment's `api_base`. */
const own = (variable: string, more: Partial<Vendor> = {}): Vendor => ({
  protocol: "openai",
  baseUrlVariable: variable,
  toBaseUrl: withoutPath,
  workloads: ["chat", "embeddings", "images", "speech", "rerank"],
  ...more
})

const azure: Vendor = {
  protocol: "openai",
  baseUrlVariable: "AZURE_API_BASE",
  toBaseUrl: (url) => URL.canParse(url) ? `${new URL(url).origin}/openai/v1` : url,
  keys: ["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"],
  workloads: openAiWorkloads
}

const ollama: Vendor = own("OLLAMA_API_BASE", {
  baseUrl: "http://127.0.0.1:11434/v1",
  toBaseUrl: (url) => `${without(withoutPath(url), /\/(?:v1|api)$/)}/v1`,
  workloads: ["chat", "embeddings"]
})

const cohere: Vendor = {
  protocol: "cohere",
  baseUrl: "https://api.cohere.com",
  toBaseUrl: (url) => without(url, /\/v\d(?:\/(?:chat|embed|rerank))?$/),
  keys: ["COHERE_API_KEY", "CO_API_KEY"],
  workloads: ["chat", "embeddings", "rerank"]
}

const dashScopeKey = "DASHSCOPE_API_KEY"

const table: Readonly<Record<string, Vendor>> = {
  openai: openAi("https://api.openai.com/v1", "OPENAI_API_KEY", openAiWorkloads),
  "text-completion-openai": openAi("https://api.openai.com/v1", "OPENAI_API_KEY", ["chat"]),
  azure,
  azure_text: azure,
  azure_ai: { ...azure, baseUrlVariable: "AZURE_AI_API_BASE", keys: ["AZURE_AI_API_KEY"] },
  anthropic: {
    protocol: "anthropic",
    baseUrl: "https://api.anthropic.com",
    baseUrlVariable: "ANTHROPIC_API_BASE",
    toBaseUrl: (url) => without(url, /\/v1(?:\/messages)?$/),
    keys: ["ANTHROPIC_API_KEY"],
    workloads: ["chat"]
  },
  gemini: {
    protocol: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    baseUrlVariable: "GEMINI_API_BASE",
    toBaseUrl: (url) => /\/v\d\w*\/?$/.test(url) ? without(url, /$/) : `${without(url, /$/)}/v1beta`,
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    workloads: ["chat", "embeddings", "images"]
  },
  cohere,
  cohere_chat: cohere,
  jina_ai: openAi("https://api.jina.ai/v1", ["JINA_AI_API_KEY", "JINA_API_KEY"], ["embeddings", "rerank"]),
  voyage: openAi("https://api.voyageai.com/v1", ["VOYAGE_API_KEY", "VOYAGE_AI_API_KEY"], ["embeddings"]),
  groq: openAi("https://api.groq.com/openai/v1", "GROQ_API_KEY", ["chat", "speech"]),
  mistral: openAi("https://api.mistral.ai/v1", "MISTRAL_API_KEY", ["chat", "embeddings"], olderLimit),
  codestral: openAi("https://codestral.mistral.ai/v1", "CODESTRAL_API_KEY", ["chat"], olderLimit),
  together_ai: openAi(
    "https://api.together.ai/v1",
    ["TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"],
    ["chat", "embeddings", "images", "rerank"],
    olderLimit
  ),
  fireworks_ai: openAi(
    "https://api.fireworks.ai/inference/v1",
    ["FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"],
    ["chat", "embeddings"],
    { toModel: (model) => /^accounts\/|#/.test(model) ? model : `accounts/fireworks/models/${model}` }
  ),
  deepseek: openAi("https://api.deepseek.com/beta", "DEEPSEEK_API_KEY", ["chat"], olderLimit),
  xai: openAi("https://api.x.ai/v1", "XAI_API_KEY", ["chat", "images"]),
  openrouter: openAi(
    "https://openrouter.ai/api/v1",
    ["OPENROUTER_API_KEY", "OR_API_KEY"],
    ["chat", "embeddings"],
    { options: { cacheControl: true } }
  ),
  perplexity: openAi(
    "https://api.perplexity.ai",
    ["PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY"],
    ["chat"],
    olderLimit
  ),
  nvidia_nim: openAi("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
  cerebras: openAi("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", ["chat"]),
  sambanova: openAi("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
  deepinfra: openAi("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
  moonshot: openAi("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", ["chat"]),
  minimax: openAi("https://api.minimax.io/v1", "MINIMAX_API_KEY", ["chat"]),
  zai: openAi("https://api.z.ai/api/paas/v4", "ZAI_API_KEY", ["chat"]),
  volcengine: openAi("https://ark.cn-beijing.volces.com/api/v3", ["VOLCENGINE_API_KEY", "ARK_API_KEY"]),
  nebius: openAi("https://api.studio.nebius.ai/v1", "NEBIUS_API_KEY"),
  novita: openAi("https://api.novita.ai/v3/openai", "NOVITA_API_KEY"),
  lambda_ai: openAi("https://api.lambda.ai/v1", "LAMBDA_API_KEY", ["chat"]),
  hyperbolic: openAi("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY", ["chat"]),
  featherless_ai: openAi("https://api.featherless.ai/v1", "FEATHERLESS_AI_API_KEY", ["chat"]),
  friendliai: openAi("https://api.friendli.ai/serverless/v1", ["FRIENDLIAI_API_KEY", "FRIENDLI_TOKEN"], ["chat"]),
  baseten: openAi("https://inference.baseten.co/v1", "BASETEN_API_KEY", ["chat"]),
  meta_llama: openAi("https://api.llama.com/compat/v1", "LLAMA_API_KEY", ["chat"]),
  scaleway: openAi("https://api.scaleway.ai/v1", "SCW_SECRET_KEY"),
  ovhcloud: openAi("https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
  vercel_ai_gateway: openAi("https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
  dashscope: openAi(
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    dashScopeKey,
    ["chat", "embeddings"],
    {
      otherwise: {
        protocol: "dashscope",
        baseUrl: "https://dashscope-intl.aliyuncs.com",
        toBaseUrl: (url) => URL.canParse(url) ? new URL(url).origin : url,
        keys: [dashScopeKey],
        workloads: ["images", "video"]
      }
    }
  ),
  ollama,
  ollama_chat: ollama,
  vllm: own("VLLM_API_BASE"),
  hosted_vllm: own("HOSTED_VLLM_API_BASE"),
  lm_studio: own("LM_STUDIO_API_BASE"),
  llamafile: own("LLAMAFILE_API_BASE", { baseUrl: "http://127.0.0.1:8080/v1" }),
  xinference: own("XINFERENCE_API_BASE"),
  infinity: own("INFINITY_API_BASE"),
  docker_model_runner: own("DOCKER_MODEL_RUNNER_API_BASE"),
  litellm_proxy: own("LITELLM_PROXY_API_BASE", { keys: ["LITELLM_PROXY_API_KEY"] }),
  openai_like: own("OPENAI_LIKE_API_BASE", { keys: ["OPENAI_LIKE_API_KEY"] }),
  custom_openai: own("OPENAI_API_BASE")
}

/** Packages of the AI SDK for prefixes that the gateway's own protocols do not reach. */
const packages: Readonly<Record<string, string>> = {
  bedrock: "@ai-sdk/amazon-bedrock",
  bedrock_converse: "@ai-sdk/amazon-bedrock",
  vertex_ai: "@ai-sdk/google-vertex",
  vertex_ai_beta: "@ai-sdk/google-vertex",
  fal_ai: "@ai-sdk/fal",
  replicate: "@ai-sdk/replicate",
  elevenlabs: "@ai-sdk/elevenlabs",
  deepgram: "@ai-sdk/deepgram",
  huggingface: "@ai-sdk/huggingface",
  black_forest_labs: "@ai-sdk/black-forest-labs",
  voyage: "@ai-sdk/voyage"
}

/** Advice for a prefix, or a workload of a prefix, that the table lacks. */
export const insteadOf = (prefix: string): string => {
  const name = packages[prefix]
  return name === undefined
    ? "add a provider by hand, by one of the gateway's protocols or a package of the AI SDK"
    : `install ${name} and add a provider with \`protocol: ai-sdk\` by hand`
}

const isKnown = (prefix: string): boolean => Object.hasOwn(table, prefix) || Object.hasOwn(packages, prefix)

/** LiteLLM's prefixes for models whose names lack one. */
const byName: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(?:gpt-|chatgpt-|o\d|text-embedding-|dall-e-|whisper-|tts-|omni-moderation-|text-moderation-|ft:)/, "openai"],
  [/^claude-/, "anthropic"],
  [/^(?:command-|embed-|rerank-)/, "cohere"],
  [/^gemini-/, "vertex_ai"]
]

/** The prefix and the rest of `openai/gpt-5`; `undefined` if the name states no provider. */
export const splitModel = (
  name: string,
  provider?: string
): { readonly prefix: string; readonly model: string } | undefined => {
  const at = name.indexOf("/")
  const prefix = name.slice(0, Math.max(at, 0))
  if (provider !== undefined) return { prefix: provider, model: prefix === provider ? name.slice(at + 1) : name }
  if (isKnown(prefix)) return { prefix, model: name.slice(at + 1) }
  const known = byName.find(([pattern]) => pattern.test(name))
  return known === undefined ? undefined : { prefix: known[1], model: name }
}

/** How a workload of a prefix is reached; `undefined` if the gateway has no protocol for it. */
export const vendorFor = (prefix: string, workload: Workload): Vendor | undefined => {
  const vendor = Object.hasOwn(table, prefix) ? table[prefix] : undefined
  if (vendor?.workloads.includes(workload) !== false) return vendor
  return vendor.otherwise?.workloads.includes(workload) === true ? vendor.otherwise : undefined
}
