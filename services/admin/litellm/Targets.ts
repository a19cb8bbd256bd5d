/** A deployment of LiteLLM's `model_list` as a provider and a target of the catalogue. */
import { Result, Schema } from "effect"
import { knownFacts } from "../../../shared/catalogue/KnownModels.ts"
import type { Facts } from "../../../shared/catalogue/Facts.ts"
import type { Target } from "../../../shared/catalogue/Model.ts"
import type { Price } from "../../../shared/catalogue/Price.ts"
import { Provider } from "../../../shared/catalogue/Provider.ts"
import type { Workload } from "../../../shared/contract/Operation.ts"
import type { Config, Deployment, Prices } from "./Config.ts"
import type { Credentials, Placed } from "./Credentials.ts"
import type { Findings } from "./Findings.ts"
import { insteadOf, splitModel, type Vendor, vendorFor } from "./Vendors.ts"

type Path = ReadonlyArray<PropertyKey>
type Encoded = typeof Provider.Encoded

/** A deployment as a target of the catalogue. */
export interface ImportedTarget {
  readonly workload: Workload
  readonly target: Target
  readonly facts: Facts
  readonly deployment: Deployment
  readonly path: Path
}

/** Workloads by the `mode` in `model_info`. Other modes, such as `realtime`, have no counterpart. */
const workloadOfMode: Readonly<Record<string, Workload>> = {
  chat: "chat",
  completion: "chat",
  responses: "chat",
  moderation: "chat",
  batch: "chat",
  embedding: "embeddings",
  rerank: "rerank",
  image_generation: "images",
  image_edit: "images",
  video_generation: "video",
  audio_speech: "speech",
  audio_transcription: "speech"
}

/** Workloads by the model's name, for deployments without a mode. LiteLLM looks their mode up by the model. */
const workloadByName: ReadonlyArray<readonly [RegExp, Workload]> = [
  [/embed|\bbge-|\be5-/i, "embeddings"],
  [/rerank/i, "rerank"],
  [/whisper|transcribe|\btts\b|speech/i, "speech"],
  [/dall-e|gpt-image|imagen|flux|stable-diffusion|\bsd3|image-gen|recraft|ideogram/i, "images"],
  [/sora|\bveo\b|video/i, "video"]
]

const workloadOf = ({ litellm_params: { model }, model_info = {} }: Deployment): Workload | undefined => {
  if (model_info.mode !== undefined) return workloadOfMode[model_info.mode]
  return workloadByName.find(([pattern]) => pattern.test(model_info.base_model ?? model))?.[1] ?? "chat"
}

const million = 1_000_000
const perMillion = (dollars: number | undefined): number | undefined =>
  dollars === undefined ? undefined : Number((dollars * million).toPrecision(12))

const sum = (...amounts: ReadonlyArray<number | undefined>): number | undefined =>
  amounts.every((amount) => amount === undefined)
    ? undefined
    : amounts.reduce<number>((total, amount = 0) => total + amount, 0)

/** Removes fields that are `undefined`. Returns `undefined` if no field is left. */
const compact = <A extends object>(fields: A): { [Name in keyof A]: Exclude<A[Name], undefined> } | undefined => {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return entries.length === 0 ? undefined : Object.fromEntries(entries) as never
}

const priceOf = (prices: Prices): Price | undefined =>
  compact({
    inputPerMillion: perMillion(prices.input_cost_per_token),
    outputPerMillion: perMillion(prices.output_cost_per_token),
    cachedPerMillion: perMillion(prices.cache_read_input_token_cost),
    cacheWritePerMillion: perMillion(prices.cache_creation_input_token_cost),
    cacheWriteHourPerMillion: perMillion(prices.cache_creation_input_token_cost_above_1hr),
    perSearchUnit: prices.input_cost_per_query,
    perMillionCharacters: perMillion(prices.input_cost_per_character),
    perSecond: sum(prices.input_cost_per_second, prices.output_cost_per_second),
    perImage: prices.output_cost_per_image
  }) as Price | undefined

const factsOf = ({ litellm_params: parameters, model_info = {} }: Deployment, model: string): Facts => {
  const own = Object.entries(model_info).filter(([name]) => name.includes("cost"))
  const price = priceOf({ ...Object.fromEntries(own), ...parameters }) ??
    knownFacts(model_info.base_model ?? model)?.price
  const { max_input_tokens, max_output_tokens, max_tokens } = model_info
  return compact({
    contextWindow: max_input_tokens ?? (max_output_tokens === undefined ? max_tokens : undefined),
    maxOutputTokens: max_output_tokens ?? (max_input_tokens === undefined ? undefined : max_tokens),
    inputModalities: model_info.supports_vision === undefined
      ? undefined
      : model_info.supports_vision
      ? ["text", "image"] as const
      : ["text"] as const,
    tools: model_info.supports_function_calling,
    reasoning: model_info.supports_reasoning,
    price
  }) ?? {} as Facts
}

const toMillis = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.max(1, Math.round(seconds * 1000))

/** The highest limits that the catalogue accepts for a provider. */
const mostOf = { max_parallel_requests: 100_000, rpm: 100_000_000, tpm: 1_000_000_000_000 }

const slugOf = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "")

const decodeProvider = Schema.decodeUnknownResult(Provider)

/** The catalogue's providers. Deployments with the same settings share a provider. */
export class Targets {
  readonly providers = new Map<string, Encoded>()
  /** The indexes of deployments that are not imported. */
  readonly skipped = new Set<number>()
  readonly #shared = new Map<string, string>()
  readonly #config: Config
  readonly #credentials: Credentials
  readonly #findings: Findings

  constructor(config: Config, credentials: Credentials, findings: Findings) {
    this.#config = config
    this.#credentials = credentials
    this.#findings = findings
  }

  /** Returns `undefined` and reports the reason if the deployment cannot be imported. */
  import(deployment: Deployment, index: number): ImportedTarget | undefined {
    const path = ["model_list", index]
    const { litellm_params: parameters, model_info, model_name } = deployment
    if (/\*/.test(model_name + parameters.model)) {
      return this.#skip(index, "the catalogue has no wildcards. List each model that clients use, then import again")
    }
    this.#reportOverridden(deployment, index)
    if (model_info?.team_id !== undefined) {
      this.#findings.add(
        [...path, "model_info", "team_id"],
        "every key may use the model: restrict others by their `--models`"
      )
    }
    const workload = workloadOf(deployment)
    if (workload === undefined) {
      return this.#skip(index, "the gateway has no operations of this `mode`")
    }
    const split = splitModel(parameters.model, parameters.custom_llm_provider)
    if (split === undefined) {
      return this.#skip(index, "`model` states no known provider, as `openai/` does")
    }
    const { model, prefix } = split
    const vendor = vendorFor(prefix, workload)
    if (vendor === undefined) {
      return this.#skip(index, `no protocol for ${workload} of ${prefix}: ${insteadOf(prefix)}`)
    }
    const name = this.#providerFor(deployment, index, prefix, vendor)
    if (name === undefined) return undefined
    const target = { provider: name, model: vendor.toModel?.(model) ?? model }
    return { workload, target, facts: factsOf(deployment, model), deployment, path }
  }

  #skip(index: number, reason: string): undefined {
    this.skipped.add(index)
    this.#findings.add(["model_list", index], `not imported: ${reason}`)
  }

  /** Reports settings that have no effect in LiteLLM either, because another setting overrides them. */
  #reportOverridden({ litellm_params: parameters, model_info = {} }: Deployment, index: number): void {
    const overridden = (by: string, ...path: Path) =>
      this.#findings.add(["model_list", index, ...path], `no effect: ${by} applies`)
    if (parameters.api_base !== undefined && parameters.base_url !== undefined) {
      overridden("api_base", "litellm_params", "base_url")
    }
    if (parameters.num_retries !== undefined && parameters.max_retries !== undefined) {
      overridden("num_retries", "litellm_params", "max_retries")
    }
    for (const name of Object.keys(model_info).filter((name) => name.includes("cost") && name in parameters)) {
      overridden("that of litellm_params", "model_info", name)
    }
    const { max_input_tokens, max_output_tokens, max_tokens } = model_info
    if (max_tokens !== undefined && max_input_tokens !== undefined && max_output_tokens !== undefined) {
      overridden("max_output_tokens", "model_info", "max_tokens")
    }
  }

  /** A setting of the deployment, or of the credential that it names. */
  #setting(deployment: Deployment, index: number, name: "api_key" | "api_base" | "api_version"): Placed | undefined {
    const { litellm_params: parameters } = deployment
    const own = parameters[name] ?? (name === "api_base" ? parameters.base_url : undefined)
    if (own !== undefined) {
      const field = parameters[name] === undefined ? "base_url" : name
      return { value: own, path: ["model_list", index, "litellm_params", field] }
    }
    const at =
      this.#config.credential_list?.findIndex(({ credential_name }) =>
        credential_name === parameters.litellm_credential_name
      ) ?? -1
    const value = this.#config.credential_list?.[at]?.credential_values[name]
    return value === undefined ? undefined : { value, path: ["credential_list", at, "credential_values", name] }
  }

  #providerFor(deployment: Deployment, index: number, prefix: string, vendor: Vendor): string | undefined {
    const { litellm_params: parameters, model_name } = deployment
    const named = parameters.litellm_credential_name
    if (
      named !== undefined &&
      this.#config.credential_list?.some(({ credential_name }) => credential_name === named) !== true
    ) {
      return this.#skip(index, "`credential_list` has no credential of this name: those in the database are encrypted")
    }
    const base = this.#setting(deployment, index, "api_base")
    const given = base === undefined
      ? this.#credentials.valueOf(vendor.baseUrlVariable)
      : this.#credentials.resolve(base.value)
    if (base !== undefined && given === undefined) {
      return this.#skip(index, "set the variable in `api_base` and import again: the catalogue needs its value")
    }
    const baseUrl = given === undefined ? vendor.baseUrl : vendor.toBaseUrl?.(given) ?? given
    if (baseUrl === undefined) {
      return this.#skip(index, `state \`api_base\`, or set ${vendor.baseUrlVariable} and import again`)
    }
    if (Result.isFailure(decodeProvider({ protocol: vendor.protocol, baseUrl }))) {
      return this.#skip(index, "`api_base` must be an http(s) URL without user name, password or query")
    }
    const version = this.#setting(deployment, index, "api_version")
    if (version !== undefined) {
      this.#findings.add(version.path, "not needed: the gateway uses the API without versions, /openai/v1")
    }
    const apiKey = this.#keyFor(deployment, index, prefix, vendor, given !== undefined)
    const provider: Encoded = {
      protocol: vendor.protocol,
      baseUrl,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...this.#behaviour(deployment, index),
      ...(vendor.options === undefined ? {} : { options: vendor.options })
    }
    // a provider with limits is not shared: they are the limits of one deployment
    if (provider.limits !== undefined) return this.#add(`${slugOf(prefix)}-${slugOf(model_name)}`, provider)
    const settings = JSON.stringify(provider)
    const shared = this.#shared.get(settings) ?? this.#add(slugOf(prefix), provider)
    this.#shared.set(settings, shared)
    return shared
  }

  #add(wanted: string, provider: Encoded): string {
    let name = wanted
    for (let count = 2; this.providers.has(name); count++) name = `${wanted}-${count}`
    this.providers.set(name, provider)
    return name
  }

  #keyFor(
    deployment: Deployment,
    index: number,
    prefix: string,
    vendor: Vendor,
    hasOwnBase: boolean
  ): string | undefined {
    const placed = this.#setting(deployment, index, "api_key")
    const variable = `${slugOf(prefix).replaceAll("-", "_").toUpperCase()}_API_KEY`
    if (placed !== undefined && placed.value !== "") return this.#credentials.keyFrom(placed, variable)
    const usual = this.#credentials.firstSet(vendor.keys ?? [])
    if (usual === undefined) return undefined
    if (!hasOwnBase || vendor.baseUrl === undefined) return this.#credentials.refer(usual)
    this.#findings.add(
      ["model_list", index, "litellm_params", "api_base"],
      `this server gets no key: add \`apiKey: "\${${usual}}"\` to its provider if it needs one, as LiteLLM sent that`
    )
    return undefined
  }

  /** Timeouts, limits, retries and circuit breaker: the deployment's own settings, or else those for all deployments. */
  #behaviour({ litellm_params: parameters }: Deployment, index: number): Partial<Encoded> {
    const { litellm_settings = {}, router_settings = {} } = this.#config
    const total = toMillis(parameters.timeout ?? router_settings.timeout ?? litellm_settings.request_timeout)
    const retries: number | undefined = parameters.num_retries ?? parameters.max_retries ??
      router_settings.num_retries ??
      litellm_settings.num_retries
    const cooldown = toMillis(parameters.cooldown_time ?? router_settings.cooldown_time)
    const limit = (name: keyof typeof mostOf): number | undefined => {
      const value = parameters[name]
      if (value === undefined || value >= 1) {
        return value === undefined
          ? undefined
          : Math.min(Math.floor(value), mostOf[name])
      }
      this.#findings.add(
        ["model_list", index, "litellm_params", name],
        "not imported: a limit of a provider is at least 1"
      )
      return undefined
    }
    return compact({
      timeouts: compact({
        firstByteMs: total,
        idleMs: toMillis(parameters.stream_timeout ?? router_settings.stream_timeout),
        totalMs: total
      }),
      limits: compact({
        concurrency: limit("max_parallel_requests"),
        requestsPerMinute: limit("rpm"),
        tokensPerMinute: limit("tpm")
      }),
      retry: compact({
        times: retries === undefined ? undefined : Math.min(5, Math.max(0, Math.round(retries))),
        baseMs: toMillis(router_settings.retry_after)
      }),
      breaker: compact({
        enabled: router_settings.disable_cooldowns === true ? false : undefined,
        openMs: cooldown,
        maxOpenMs: cooldown === undefined ? undefined : Math.max(10_000, cooldown)
      })
    }) as Partial<Encoded> ?? {}
  }
}
