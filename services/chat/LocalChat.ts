/**
 * The engine of `local-chat`: an echo, not a model, that calls tools and follows JSON schemas.
 *
 * The same conversation gets the same answer. Its pace and its faults can be set, so that it also simulates load and
 * failures for tests and benchmarks.
 */
import { Clock, Context, Effect, Layer, Option, Predicate, Random, Schema, Stream } from "effect"
import { atLeast, between, integer } from "../../shared/contract/Fields.ts"
import type { JobError } from "../../shared/contract/JobError.ts"
import { InvalidRequest, ProviderFailed } from "../../shared/contract/JobError.ts"
import type { Conversation } from "../../shared/provider/dialects/conversation/Conversation.ts"
import type { ModelEvent } from "../../shared/provider/dialects/conversation/ModelEvent.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import type { Step } from "./Answer.ts"
import { planAnswers, speak } from "./Answer.ts"
import { textOf } from "./Text.ts"

const Count = atLeast(0)
const NotNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** An injected fault. */
const LocalChatFault = Schema.Struct({
  /** The engine reports an error; goes silent for ever; or breaks off. */
  kind: Schema.Literals(["error", "stall", "cut"]),
  /** Tokens of a choice before it happens. A shorter answer fails before its finish. */
  afterTokens: Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /**
   * The share of requests that it happens to, 0 to 1. Drawn by the request's seed, or else by its number in this
   * process, so that two runs fail alike.
   */
  rate: between(0, 1).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(1))
  )
})

/** What the catalogue can set for this engine. */
export const LocalChatOptions = Schema.Struct({
  /** Milliseconds from the request to its first token. */
  firstTokenMs: Schema.optionalKey(NotNegative),
  /** Tokens per second of each choice; 0 or absent: as fast as they can be taken. */
  tokensPerSecond: Schema.optionalKey(NotNegative),
  /** Length of an answer in text, in words: the engine repeats itself or stops short to reach it. At most 20,000. */
  words: Schema.optionalKey(integer(1, 20_000)),
  fault: Schema.optionalKey(LocalChatFault)
})
export type LocalChatOptions = typeof LocalChatOptions.Type
type LocalChatFault = typeof LocalChatFault.Type

/** What leaves in one go where no pace is set: more would keep others waiting. */
const eventsAtOnce = 64
const tokensAtOnce = 512

/** As many as OpenAI allows. All are made at once, so each costs memory. */
const maxChoices = 128

/**
 * What is looked through again and again while an answer is made: as much as OpenAI takes of functions and of properties
 * in a schema, and a few more stop sequences.
 */
const maxTools = 128
const maxStops = 64
const maxSchemaValues = 10_000

const checkSize = ({ format, stop, tools }: Conversation): Effect.Effect<void, InvalidRequest> => {
  const refuse = (param: string, what: string) => InvalidRequest.at(param, `${what} for this model`)
  if (stop.length > maxStops) return Effect.fail(refuse("stop", `must hold at most ${maxStops} sequences`))
  if (tools.length > maxTools) return Effect.fail(refuse("tools", `must hold at most ${maxTools} tools`))
  const large = tools.find(({ parameters }) => !hasAtMost(parameters, maxSchemaValues))
  if (large !== undefined) {
    return Effect.fail(refuse(large.path ?? "tools", `must have a schema of at most ${maxSchemaValues} values`))
  }
  return format.type === "jsonSchema" && !hasAtMost(format.schema, maxSchemaValues)
    ? Effect.fail(refuse("response_format", `must have a schema of at most ${maxSchemaValues} values`))
    : Effect.void
}

/** Whether a JSON value holds no more values than that. */
const hasAtMost = (json: unknown, most: number): boolean => {
  const open: Array<unknown> = [json]
  for (let seen = 0; open.length > 0; seen++) {
    if (seen > most) return false
    const next = open.pop()
    if (Predicate.isObjectOrArray(next)) { for (const value of Object.values(next)) open.push(value) }
  }
  return true
}

export class LocalChat extends Context.Service<LocalChat, {
  /**
   * The events of the answer, choices taking turns token by token, one delta per word or mark.
   *
   * Stops the text before the first stop sequence that would occur in it, and every choice at `maxTokens`. Fails with
   * `InvalidRequest` if the request asks for more than 128 choices, a tool call that cannot be made or JSON of a schema
   * that cannot be followed, and with `ProviderFailed` for an injected fault. Usage counts the text of all turns, tools and schemas; beyond 100,000
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
  if (conversation.choices > maxChoices) {
    return yield* InvalidRequest.at("n", `must be at most ${maxChoices} for this model`)
  }
  yield* checkSize(conversation)
  const startedAt = yield* Clock.currentTimeMillis
  const fault = yield* drawFault(options.fault, conversation.seed ?? request)
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

  /** What is due now, waiting for the first of it. None when every choice is over. */
  const nextEvents = Effect.fnUntraced(function*(): Effect.fn.Return<ReadonlyArray<ModelEvent>, JobError> {
    const events: Array<ModelEvent> = []
    let tokensNow = 0
    while (!broken && events.length < eventsAtOnce && tokensNow < tokensAtOnce) {
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
      tokensNow += tokens
      events.push(event)
    }
    if (fault !== undefined && broken && events.length === 0) return yield* actOut(fault)
    return events
  })

  const usage = Effect.map(tokenizer.countAll(inputTexts(conversation)), (inputTokens): ModelEvent => ({
    type: "usage",
    usage: { inputTokens, outputTokens: choices.reduce((sum, { tokens }) => sum + tokens, 0) }
  }))

  return Stream.paginate(
    "choices" as "choices" | "usage",
    Effect.fnUntraced(function*(stage) {
      if (stage === "usage") return [[yield* usage], Option.none()]
      // Between two pages other fibers have their turn.
      yield* Effect.yieldNow
      const events = yield* nextEvents()
      return [events, Option.some(events.length === 0 ? "usage" : "choices")]
    })
  )
})

interface Choice {
  readonly steps: Iterator<Step, void>
  /** So far. */
  tokens: number
  over: boolean
}

/** Choices take turns: the one that has said least is next. */
const nextChoice = (choices: ReadonlyArray<Choice>): Choice | undefined => {
  let next: Choice | undefined
  for (const choice of choices) if (!choice.over && (next === undefined || choice.tokens < next.tokens)) next = choice
  return next
}

const drawFault = Effect.fnUntraced(function*(fault: LocalChatOptions["fault"], seed: number) {
  if (fault === undefined) return undefined
  const draw = yield* Random.next.pipe(Random.withSeed(seed))
  return draw < fault.rate ? fault : undefined
})

const actOut = ({ kind }: LocalChatFault): Effect.Effect<never, ProviderFailed> =>
  kind === "stall"
    ? Effect.never
    : Effect.fail(new ProviderFailed({ provider: "local", reason: kind, status: null, retryAfterMs: null }))

const inputTexts = ({ format, tools, turns }: Conversation): ReadonlyArray<string> => [
  ...turns.flatMap((turn) => [textOf(turn), ...turn.toolCalls.flatMap((call) => [call.name, call.arguments])]),
  ...tools.map((tool) => JSON.stringify(tool)),
  ...format.type === "jsonSchema" ? [JSON.stringify(format.schema)] : []
]
