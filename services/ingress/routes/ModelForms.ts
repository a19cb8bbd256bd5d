/** The forms of one model and of a page of models, for each vendor's clients. */
import { DateTime, Option, Result } from "effect"
import type { OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Dialect, Workload } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"

/** A model that the key may use, with its name. */
export type Entry = readonly [name: string, model: OfferedModel]

export interface ModelForm {
  readonly dialect: Dialect
  readonly one: (entry: Entry) => object
  /** The page that the query asks for. */
  readonly list: (entries: ReadonlyArray<Entry>, query: URLSearchParams) => Result.Result<object, InvalidRequest>
}

// Facts that only some vendors have fields for. The names are those that OpenRouter asks of providers.

/** Dollars per unit, as decimal text: a binary fraction of a cent would not be exact. */
const dollars = (price: number): string => price.toFixed(12).replace(/\.?0+$/, "")

const million = 1_000_000

const pricingOf = ({ price }: OfferedModel): object | undefined => {
  if (price === undefined) return undefined
  const perUnit = {
    prompt: price.inputPerMillion && price.inputPerMillion / million,
    completion: price.outputPerMillion && price.outputPerMillion / million,
    input_cache_read: price.cachedPerMillion && price.cachedPerMillion / million,
    input_cache_write: price.cacheWritePerMillion && price.cacheWritePerMillion / million,
    input_cache_write_1h: price.cacheWriteHourPerMillion && price.cacheWriteHourPerMillion / million,
    image: price.perImage,
    request: price.perRequest,
    search_unit: price.perSearchUnit,
    second: price.perSecond,
    character: price.perMillionCharacters && price.perMillionCharacters / million
  }
  return Object.fromEntries(
    Object.entries(perUnit).flatMap(([unit, price]) => price === undefined ? [] : [[unit, dollars(price)]])
  )
}

const featuresOf = ({ reasoning, tools }: OfferedModel): ReadonlyArray<string> | undefined =>
  reasoning === undefined && tools === undefined
    ? undefined
    : [...(tools === true ? ["tools"] : []), ...(reasoning === true ? ["reasoning"] : [])]

/** What models of a workload are for, in Together's words, and their usual modalities, in OpenRouter's. */
const kinds: Readonly<Record<Workload, { readonly type: string; readonly input?: string; readonly output?: string }>> =
  {
    chat: { type: "chat", input: "text", output: "text" },
    images: { type: "image", input: "text", output: "image" },
    video: { type: "video", input: "text", output: "video" },
    embeddings: { type: "embedding", input: "text", output: "embeddings" },
    rerank: { type: "rerank", input: "text", output: "rerank" },
    // some speak, others listen
    speech: { type: "audio" }
  }

/** Unknown modalities of a workload that has usual ones are those. */
const architectureOf = ({ inputModalities, outputModalities, workload }: OfferedModel): object | undefined => {
  const { input, output } = kinds[workload]
  const inputs = inputModalities ?? (input === undefined ? [] : [input])
  const outputs = outputModalities ?? (output === undefined ? [] : [output])
  return inputs.length === 0 || outputs.length === 0 ? undefined : {
    modality: `${inputs.join("+")}->${outputs.join("+")}`,
    input_modalities: inputs,
    output_modalities: outputs
  }
}

/** LiteLLM's time of every model: clients sort by it, and show 0 as a date of 1970. */
const usualTime = 1_677_610_602

/** When a model was made, in seconds: the date in its name, such as `gpt-4o-2024-08-06`, as the catalogue knows no other. */
const createdOf = (name: string): number => {
  const [, year, month, day] = /(?<!\d)(20\d\d)-?(\d\d)-?(\d\d)(?!\d)/.exec(name) ?? []
  const date = year === undefined ? Option.none() : DateTime.make(`${year}-${month}-${day}T00:00:00Z`)
  return Option.match(date, { onNone: () => usualTime, onSome: (date) => DateTime.toEpochMillis(date) / 1_000 })
}

/** Facts that every form has. Unknown ones are `undefined`, which `JSON.stringify` leaves out. */
const commonFacts = (model: OfferedModel) => ({
  description: model.description,
  architecture: architectureOf(model),
  input_modalities: model.inputModalities,
  output_modalities: model.outputModalities,
  supported_features: featuresOf(model),
  pricing: pricingOf(model)
})

/** The position of the entry that a cursor names; an error if there is none. */
const positionOf = (
  entries: ReadonlyArray<Entry>,
  query: URLSearchParams,
  param: string
): Result.Result<number | undefined, InvalidRequest> => {
  const cursor = query.get(param)
  if (cursor === null || cursor === "") return Result.succeed(undefined)
  const at = entries.findIndex(([name]) => name === cursor)
  return at === -1 ? Result.fail(InvalidRequest.at(param, "names no model of the list")) : Result.succeed(at)
}

const maxPage = 1_000

/** How many entries; `usual` if the query does not say. */
const sizeIn = (query: URLSearchParams, param: string, usual: number): Result.Result<number, InvalidRequest> => {
  const size = Number(query.get(param) ?? usual)
  return Number.isInteger(size) && size >= 1
    ? Result.succeed(Math.min(size, maxPage))
    : Result.fail(InvalidRequest.at(param, "must be an integer of at least 1"))
}

const openAi: ModelForm = {
  dialect: "openai",
  one: ([id, model]) => ({
    id,
    object: "model",
    created: createdOf(id),
    owned_by: "model-gateway",
    type: kinds[model.workload].type,
    context_length: model.contextWindow,
    max_output_length: model.maxOutputTokens,
    ...commonFacts(model)
  }),
  list: (entries, query) =>
    Result.succeed({
      object: "list",
      data: entries.map(openAi.one),
      has_more: false,
      // Codex rejects a list with an incomplete card, and the gateway does not have its instructions for any model
      ...(query.has("client_version") ? { models: [] } : {})
    })
}

const anthropic: ModelForm = {
  dialect: "anthropic",
  one: ([id, model]) => ({
    id,
    type: "model",
    display_name: id,
    created_at: DateTime.formatIso(DateTime.makeUnsafe(createdOf(id) * 1_000)).replace(".000", ""),
    lifecycle: "active",
    line: null,
    deprecated_at: null,
    retires_at: null,
    capabilities: null,
    max_input_tokens: model.contextWindow ?? null,
    max_tokens: model.maxOutputTokens ?? null,
    ...commonFacts(model)
  }),
  list: (entries, query) =>
    Result.map(
      Result.all([
        sizeIn(query, "limit", 20),
        positionOf(entries, query, "after_id"),
        positionOf(entries, query, "before_id")
      ]),
      ([limit, after, before]) => {
        const start = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit)
        const end = before ?? start + limit
        const page = entries.slice(start, end)
        return {
          data: page.map(anthropic.one),
          has_more: before === undefined ? end < entries.length : start > 0,
          first_id: page.at(0)?.[0] ?? null,
          last_id: page.at(-1)?.[0] ?? null
        }
      }
    )
}

const methods = operations
  .filter(({ dialect }) => dialect === "gemini")
  .map(({ paths: [path], workloads }) => ({ method: path.slice(path.lastIndexOf(":") + 1), workloads }))

const gemini: ModelForm = {
  dialect: "gemini",
  one: ([name, model]) => {
    const { description, input_modalities, output_modalities, pricing } = commonFacts(model)
    return {
      name: `models/${name}`,
      displayName: name,
      description,
      inputTokenLimit: model.contextWindow,
      outputTokenLimit: model.maxOutputTokens,
      supportedGenerationMethods: methods
        .filter(({ workloads }) => workloads.includes(model.workload))
        .map(({ method }) => method),
      thinking: model.reasoning,
      inputModalities: input_modalities,
      outputModalities: output_modalities,
      tools: model.tools,
      pricing
    }
  },
  list: (entries, query) =>
    Result.map(
      Result.all([sizeIn(query, "pageSize", 50), positionOf(entries, query, "pageToken")]),
      ([size, last]) => {
        const start = (last ?? -1) + 1
        const page = entries.slice(start, start + size)
        return {
          models: page.map(gemini.one),
          ...(start + size < entries.length ? { nextPageToken: page.at(-1)?.[0] } : {})
        }
      }
    )
}

/** The form for a request, by the path and the headers that each vendor's clients send. */
export const formOf = (path: string, headers: Readonly<Record<string, string | undefined>>): ModelForm => {
  if (path.startsWith("/v1beta/") || headers["x-goog-api-key"] !== undefined) return gemini
  return headers["anthropic-version"] === undefined ? openAi : anthropic
}
