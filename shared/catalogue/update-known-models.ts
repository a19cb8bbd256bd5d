/**
 * Updates the table of known models: `npm run known-models -- <file> <version>`, where the file is LiteLLM's
 * `model_prices_and_context_window.json` and the version is that of its release.
 */
import { readFileSync, writeFileSync } from "node:fs"
import type { Facts } from "./Facts.ts"

/** The fields of LiteLLM's table that are used. */
interface Entry {
  readonly litellm_provider?: string
  readonly mode?: string
  readonly max_input_tokens?: number
  readonly max_output_tokens?: number
  readonly supported_modalities?: ReadonlyArray<string>
  readonly input_cost_per_token?: number
  readonly output_cost_per_token?: number
  readonly cache_read_input_token_cost?: number
  readonly cache_creation_input_token_cost?: number
  readonly cache_creation_input_token_cost_above_1hr?: number
  readonly input_cost_per_query?: number
  readonly [flag: `supports_${string}`]: boolean | undefined
}

/** Vendors that serve their own models. The names of other providers are reduced to these (see `KnownModels.ts`). */
const vendors = new Set([
  ...["openai", "anthropic", "gemini", "cohere", "cohere_chat", "mistral", "deepseek", "xai"],
  ...["zai", "moonshot", "minimax", "dashscope"]
])

/** The modalities of the answers of each mode. Models of other modes are left out. */
const outputs: Readonly<Record<string, Facts["outputModalities"]>> = {
  chat: ["text"],
  responses: ["text"],
  embedding: undefined,
  rerank: undefined
}

const inputs = [
  ["text", undefined],
  ["image", "supports_vision"],
  ["file", "supports_pdf_input"],
  ["audio", "supports_audio_input"],
  ["video", "supports_video_input"]
] as const

const perMillion = (dollars: number | undefined): number | undefined =>
  dollars === undefined ? undefined : Number((dollars * 1_000_000).toPrecision(6))

const factsOf = (entry: Entry): { readonly [Fact in keyof Facts]: Facts[Fact] | undefined } => {
  const output = outputs[entry.mode ?? ""]
  const listed = entry.supported_modalities ?? []
  return {
    contextWindow: entry.max_input_tokens,
    ...(output === undefined ? {} : {
      maxOutputTokens: entry.max_output_tokens,
      inputModalities: inputs
        .filter(([name, flag]) => flag === undefined || entry[flag] === true || listed.includes(name))
        .map(([name]) => name),
      outputModalities: entry.supports_audio_output === true ? [...output, "audio"] : output,
      tools: entry.supports_function_calling === true,
      reasoning: entry.supports_reasoning === true
    }),
    price: JSON.parse(JSON.stringify({
      inputPerMillion: perMillion(entry.input_cost_per_token),
      outputPerMillion: output === undefined ? undefined : perMillion(entry.output_cost_per_token),
      cachedPerMillion: perMillion(entry.cache_read_input_token_cost),
      cacheWritePerMillion: perMillion(entry.cache_creation_input_token_cost),
      cacheWriteHourPerMillion: perMillion(entry.cache_creation_input_token_cost_above_1hr),
      perSearchUnit: entry.input_cost_per_query
    }))
  }
}

/** Fine-tuned models, and trials of models that are listed. */
const others = /^ft:|-(?:beta|experimental|exp)\b/

const isListed = (name: string, { litellm_provider = "", max_input_tokens, mode = "" }: Entry): boolean =>
  vendors.has(litellm_provider) && mode in outputs && max_input_tokens !== undefined && !others.test(name)

const dated = /-(?:\d{8}|\d{4}-\d{2}-\d{2})$/

const [file, version] = process.argv.slice(2)
if (file === undefined || version === undefined) {
  process.stderr.write("usage: npm run known-models -- model_prices_and_context_window.json <LiteLLM's version>\n")
  process.exit(1)
}
const entries = Object.entries(JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, Entry>>)
const models = new Map<string, string>()
for (const [path, entry] of entries) {
  if (isListed(path, entry)) models.set(path.replace(/^.*\//, ""), JSON.stringify(factsOf(entry)))
}
/** The lines of the table. A dated name is listed only if its facts differ from those of the name without the date. */
const lines = [...models]
  .filter(([name, facts]) => !dated.test(name) || models.get(name.replace(dated, "")) !== facts)
  .toSorted(([a], [b]) => a < b ? -1 : 1)
  .map(([name, facts]) => `    ${JSON.stringify(name)}: ${facts}`)
const source = `LiteLLM ${version}, model_prices_and_context_window.json, MIT License, Copyright (c) 2023 Berri AI`
writeFileSync(
  new URL("known-models.json", import.meta.url),
  `{\n  "source": ${JSON.stringify(source)},\n  "models": {\n${lines.join(",\n")}\n  }\n}\n`
)
