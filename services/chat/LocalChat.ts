/**
 * The engine of `local-chat`: an echo, not a model, that calls tools and follows JSON schemas.
 *
 * The same conversation gets the same answer. Its pace and its faults can be set, so that it simulates load and failures
 * for tests and benchmarks.
 */
import { Clock, Context, Effect, Layer, Option, Predicate, Random, Schema, Stream } from "effect"
import * as ExactJson from "../../shared/bounds/ExactJson.ts"
import { atLeast, between, integer } from "../../shared/contract/Fields.ts"
import { InvalidRequest, type JobError, ProviderFailed } from "../../shared/contract/JobError.ts"
import type { Conversation } from "../../shared/provider/dialects/conversation/Conversation.ts"
import type { ModelEvent } from "../../shared/provider/dialects/conversation/ModelEvent.ts"
import { textsOf } from "../../shared/provider/dialects/counting/TokenizerCount.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import { planAnswers, speak, type Step } from "./Answer.ts"

const NotNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** An injected fault. */
const LocalChatFault = Schema.Struct({
  /** The engine reports an error, goes silent forever, or ends its answer early. */
  kind: Schema.Literals(["error", "stall", "cut"]),
  /** Number of tokens of a choice before the fault. A shorter answer fails just before it ends. */
  afterTokens: atLeast(0).pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /**
   * The share of requests with the fault, 0 to 1. The request's seed decides, or else its number in this process, so that
   * two runs fail in the same way.
   */
  rate: between(0, 1).pipe(Schema.withDecodingDefaultKey(Effect.succeed(1)))
})

/** Settings of this engine in the catalogue. */
export const LocalChatOptions = Schema.Struct({
  /** Milliseconds from the request to its first token. */
  firstTokenMs: Schema.optionalKey(NotNegative),
  /** Tokens per second of each choice; 0 or absent: as fast as the client reads. */
  tokensPerSecond: Schema.optionalKey(NotNegative),
  /** Words of a text answer, at most 20,000: the engine repeats itself or stops short. */
  words: Schema.optionalKey(integer(1, 20_000)),
  fault: Schema.optionalKey(LocalChatFault)
})
export type LocalChatOptions = typeof LocalChatOptions.Type

/** Maximum number of events, of a word each, between two pauses if no pace is set. */
const eventsAtOnce = 64

/** Limits on lists that the engine searches repeatedly. Choices and tools have OpenAI's limits; OpenAI allows fewer stops. */
const maxChoices = 128
const maxTools = 128
const maxStops = 64
const maxSchemaValues = 10_000

const checkSize = ({ choices, format, stop, tools }: Conversation): Effect.Effect<void, InvalidRequest> => {
  const schemas = tools.map(({ parameters, path = "tools" }) => ({ schema: parameters, path }))
  if (format.type === "jsonSchema") schemas.push({ schema: format.schema, path: format.path ?? "response_format" })
  const large = schemas.find(({ schema }) => !hasAtMost(schema, maxSchemaValues))
  const checks: ReadonlyArray<readonly [isOver: boolean, param: string, what: string]> = [
    [choices > maxChoices, "n", `must be at most ${maxChoices}`],
    [stop.length > maxStops, "stop", `must have at most ${maxStops} sequences`],
    [tools.length > maxTools, "tools", `must have at most ${maxTools} tools`],
    [large !== undefined, large?.path ?? "", `must have a schema of at most ${maxSchemaValues} values`]
  ]
  const over = checks.find(([isOver]) => isOver)
  return over === undefined ? Effect.void : Effect.fail(InvalidRequest.at(over[1], `${over[2]} for this model`))
}

/** Whether a JSON value holds at most `most` values. */
const hasAtMost = (json: unknown, most: number): boolean => {
  const values = [json]
  // `values` grows during the loop
  for (const value of values) {
    if (values.length > most) return false
    if (Predicate.isObjectOrArray(value)) { for (const inner of Object.values(value)) values.push(inner) }
  }
  return true
}

export class LocalChat extends Context.Service<LocalChat, {
  /**
   * The events of the answer: one delta per word or punctuation mark. Choices take turns token by token.
   *
   * Fails with `InvalidRequest` if the request is too large or the engine cannot make its tool call or follow its schema,
   * and with `ProviderFailed` for an injected fault. Usage counts the text of all turns, tools and schemas; beyond 100,000
   * characters it is estimated.
   */
  answer(conversation: Conversation, options: LocalChatOptions): Stream.Stream<ModelEvent, JobError>
}>()("services/chat/LocalChat") {
  static readonly layer = Layer.sync(LocalChat, () => {
    let requests = 0
    return LocalChat.of({
      answer: (conversation, options) => Stream.unwrap(Effect.suspend(() => start(conversation, options, requests++)))
    })
  })
}

const start = Effect.fnUntraced(function*(conversation: Conversation, options: LocalChatOptions, request: number) {
  yield* checkSize(conversation)
  const startedAt = yield* Clock.currentTimeMillis
  const draw = yield* Random.next.pipe(Random.withSeed(ExactJson.toNumber(conversation.seed ?? request)))
  const fault = options.fault !== undefined && draw < options.fault.rate ? options.fault : undefined
  const answers = yield* planAnswers(conversation, options.words)
  const tokenizer = yield* loadTokenizer
  const choices = answers.map((answer, choice): Choice => ({
    steps: speak(tokenizer, answer, choice, conversation.stop, conversation.maxTokens ?? Infinity),
    tokens: 0,
    over: false
  }))
  const firstAt = startedAt + (options.firstTokenMs ?? 0)
  const msPerToken = options.tokensPerSecond ? 1_000 / options.tokensPerSecond : 0
  let broken = false

  /** Waits for the next event and returns all that are due; none if every choice is over. */
  const nextEvents = Effect.fnUntraced(function*(): Effect.fn.Return<ReadonlyArray<ModelEvent>, JobError> {
    const events: Array<ModelEvent> = []
    while (!broken && events.length < eventsAtOnce) {
      const choice = nextChoice(choices)
      if (choice === undefined) break
      const wait = firstAt + choice.tokens * msPerToken - (yield* Clock.currentTimeMillis)
      if (wait > 0 && events.length > 0) break
      if (wait > 0) yield* Effect.sleep(wait)
      const step = choice.steps.next()
      if (step.done) {
        choice.over = true
        continue
      }
      const { event, tokens } = step.value
      broken = fault !== undefined && (choice.tokens >= fault.afterTokens || event.type === "finish")
      if (broken) break
      choice.tokens += tokens
      events.push(event)
    }
    if (fault === undefined || !broken || events.length > 0) return events
    if (fault.kind === "stall") return yield* Effect.never
    return yield* new ProviderFailed({ provider: "local", reason: fault.kind, status: null, retryAfterMs: null })
  })

  const usage = Effect.map(countInput(conversation), (inputTokens): ModelEvent => ({
    type: "usage",
    usage: {
      inputTokens,
      inputTextTokens: inputTokens,
      outputTokens: choices.reduce((sum, { tokens }) => sum + tokens, 0)
    }
  }))

  return Stream.paginate(
    "choices" as "choices" | "usage",
    Effect.fnUntraced(function*(stage) {
      if (stage === "usage") return [[yield* usage], Option.none()]
      yield* Effect.yieldNow
      const events = yield* nextEvents()
      return [events, Option.some(events.length === 0 ? "usage" : "choices")]
    })
  )
})

interface Choice {
  readonly steps: Iterator<Step, void>
  /** Number of tokens emitted so far. */
  tokens: number
  over: boolean
}

/** The choice with the fewest tokens so far. */
const nextChoice = (choices: ReadonlyArray<Choice>): Choice | undefined => {
  let next: Choice | undefined
  for (const choice of choices) if (!choice.over && (next === undefined || choice.tokens < next.tokens)) next = choice
  return next
}

/** The tokens of the texts of all turns, of tools and of schemas. */
export const countInput = (conversation: Conversation): Effect.Effect<number> =>
  Effect.flatMap(loadTokenizer, ({ countAll }) => countAll(textsOf(conversation)))
