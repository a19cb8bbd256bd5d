/**
 * Selects, for each protocol in the catalogue, the functions that make its calls and count them, the operations that it serves, and its
 * options.
 */
import { Effect, Record } from "effect"
import { type Provider, videoProtocols } from "../../catalogue/Provider.ts"
import { compaction } from "../../contract/operations/Compaction.ts"
import { operations } from "../../contract/operations/operations.ts"
import { rerank } from "../../contract/operations/Rerank.ts"
import { responses } from "../../contract/operations/Responses.ts"
import { videoGenerations } from "../../contract/operations/VideoGenerations.ts"
import * as Images from "../dialects/images/Images.ts"
import type { SchemaError } from "../../contract/SchemaErrors.ts"
import * as Options from "../call/Options.ts"
import { CohereOptions } from "../dialects/cohere/CohereOptions.ts"
import * as AiSdk from "./ai-sdk/AiSdk.ts"
import { AiSdkOptions } from "./ai-sdk/AiSdkOptions.ts"
import { anthropic } from "./anthropic/Anthropic.ts"
import * as Cohere from "./cohere/Cohere.ts"
import * as DashScope from "./dashscope/DashScope.ts"
import { DashScopeOptions } from "./dashscope/DashScopeVideo.ts"
import { gemini } from "./gemini/Gemini.ts"
import { GuardedFetch } from "../transport/GuardedFetch.ts"
import * as HttpCall from "../exchange/HttpCall.ts"
import * as Local from "./local/Local.ts"
import { openAi } from "./openai/OpenAi.ts"
import * as OpenAiImages from "./openai/OpenAiImages.ts"
import * as OpenAiResponses from "./openai/OpenAiResponses.ts"
import * as OpenAiSound from "./openai/OpenAiSound.ts"
import { type CountCalls, oneCall } from "../call/Calls.ts"
import type { Perform } from "../call/Protocol.ts"
import { ResultStore } from "../call/ResultStore.ts"
import { Secrets } from "../transport/Secrets.ts"
import { Upstream } from "../transport/Upstream.ts"

const countsOne: CountCalls = () => Effect.succeed(oneCall)

export const protocols = Effect.gen(function*() {
  const tools = {
    upstream: yield* Upstream,
    secrets: yield* Secrets,
    guard: yield* GuardedFetch,
    results: yield* ResultStore
  }
  const engines = yield* Local.LocalEngines
  const aiSdk = AiSdk.make(tools)
  const performs: Record<Provider["protocol"], Perform> = {
    "ai-sdk": aiSdk.perform,
    anthropic: HttpCall.make(anthropic, tools),
    cohere: Cohere.make(tools),
    dashscope: DashScope.make(tools),
    gemini: HttpCall.make(gemini, tools),
    openai: Cohere.beside(
      OpenAiSound.around(OpenAiImages.around(OpenAiResponses.make(tools), tools)),
      tools,
      "/rerank"
    ),
    local: Local.make(engines)
  }
  const counts: Record<Provider["protocol"], CountCalls> = {
    "ai-sdk": aiSdk.countCalls,
    anthropic: HttpCall.counter(anthropic),
    cohere: Cohere.countCalls,
    dashscope: countsOne,
    gemini: HttpCall.counter(gemini),
    openai: OpenAiResponses.countCalls,
    local: countsOne
  }
  const { around } = engines
  return { counts, performs: around === undefined ? performs : Record.map(performs, around) }
})

/** The names of the operations that each protocol serves, without videos. */
const served: Record<Provider["protocol"], ReadonlyArray<string>> = {
  "ai-sdk": AiSdk.operations,
  anthropic: HttpCall.operationsOf(anthropic),
  cohere: Cohere.operations,
  dashscope: Images.operations,
  gemini: HttpCall.operationsOf(gemini),
  openai: [...HttpCall.operationsOf(openAi), rerank.name],
  // the built-in engine of each workload serves all its other operations
  local: operations.filter(({ needsProvider }) => needsProvider !== true).map(({ name }) => name)
}

/** Whether the gateway can serve an operation by this protocol. */
export const serves = (protocol: Provider["protocol"], operation: string): boolean => {
  switch (operation) {
    case videoGenerations.name:
      return videoProtocols.some((known) => known === protocol)
    // if the provider has no compaction, the worker makes it from a response
    case compaction.name:
      return served[protocol].includes(responses.name)
    default:
      return served[protocol].includes(operation)
  }
}

/** The mistakes in the options of each protocol. The worker checks those of `local`, since they belong to its engine. */
const optionMistakes: Record<Provider["protocol"], (options: unknown) => ReadonlyArray<SchemaError>> = {
  "ai-sdk": Options.checker(AiSdkOptions),
  anthropic: Options.checker(anthropic.chat.dialect.options),
  cohere: Options.checker(CohereOptions),
  dashscope: Options.checker(DashScopeOptions),
  gemini: Options.checker(gemini.chat.dialect.options),
  openai: Options.checker(openAi.chat.dialect.options),
  local: () => []
}

/** Finds the mistakes in a provider's options. */
export const findOptionMistakes = ({ options = {}, protocol }: Provider): ReadonlyArray<SchemaError> =>
  optionMistakes[protocol](options)
