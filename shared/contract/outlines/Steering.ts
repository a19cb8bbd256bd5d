/**
 * Members by which a relayed request would get another model, another host or a dearer price than the gateway knows. A relay passes members
 * that it does not know, so a key with limited models or a budget must not send these.
 */
import { Predicate } from "effect"
import { InvalidRequest } from "../JobError.ts"

interface Member {
  /** What it chooses. */
  readonly chooses: "model" | "host" | "price"
  /**
   * The values that choose nothing beyond the request's own model and price. Default: none. With it only strings choose: the `speed` of
   * speech is a number.
   */
  readonly usual?: ReadonlyArray<string>
}

const model: Member = { chooses: "model" }
const host: Member = { chooses: "host" }

/** By name in lower case: servers that ignore case read every spelling. */
const members: ReadonlyMap<string, Member> = new Map([
  // Anthropic's and LiteLLM's
  ["fallbacks", model],
  // OpenRouter's: https://openrouter.ai/docs/api-reference/parameters
  ["models", model],
  ["route", model],
  ["preset", model],
  ["provider", host],
  ["plugins", { chooses: "price" }],
  // LiteLLM's: https://docs.litellm.ai/docs/completion/input
  ["fallback_models", model],
  ["context_window_fallback_dict", model],
  ["model_list", model],
  ["custom_llm_provider", host],
  ["api_base", host],
  ["base_url", host],
  ["api_key", host],
  // Vercel's AI Gateway
  ["provideroptions", host],
  // vLLM's: adapters, and a cache at another host
  ["lora_request", model],
  ["kv_transfer_params", host],
  // OpenAI's and Anthropic's tiers; `auto` is the provider's default, which the catalogue's price is for
  ["service_tier", {
    chooses: "price",
    usual: ["auto", "default", "standard", "standard_only", "on_demand", "flex", "batch"]
  }],
  // Anthropic's: several times, and 1.1 times, the price
  ["speed", { chooses: "price", usual: ["standard"] }],
  ["inference_geo", { chooses: "price", usual: ["global"] }]
])

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) && value.length === 0)

/** The error of the first member of a request that chooses more than a limited key may use; `undefined` if none does. */
export const steeringIn = (request: unknown): InvalidRequest | undefined => {
  if (!Predicate.isReadonlyObject(request)) return undefined
  for (const name in request) {
    const member = members.get(name.toLowerCase())
    const value = request[name]
    if (member === undefined || isEmpty(value)) continue
    if (member.usual !== undefined && (!Predicate.isString(value) || member.usual.includes(value))) continue
    return InvalidRequest.at(
      name,
      `would choose another ${member.chooses} than this API key may use: its models or its budget are limited`,
      "not_allowed"
    )
  }
  return undefined
}
