/**
 * Calls providers over HTTP, for all such protocols: relays the requests of clients that speak the provider's dialect, and translates
 * all others.
 */
import { type Clock, Effect, Schema } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import { InvalidRequest, type JobError } from "../../contract/JobError.ts"
import * as Fiberless from "../../bounds/Fiberless.ts"
import * as Options from "../call/Options.ts"
import * as ClientDialects from "../dialects/ClientDialects.ts"
import type { ChatRequest } from "../dialects/conversation/ChatOverEngine.ts"
import type { ProviderDialect } from "../dialects/conversation/Dialect.ts"
import * as InlineMedia from "../dialects/conversation/InlineMedia.ts"
import * as CountDialects from "../dialects/CountDialects.ts"
import * as Counts from "../dialects/counting/Counts.ts"
import * as ToolNames from "../dialects/fitting/ToolNames.ts"
import * as TokenizerCount from "../dialects/counting/TokenizerCount.ts"
import * as EmbeddingApi from "../dialects/embeddings/EmbeddingApi.ts"
import * as Embeddings from "../dialects/embeddings/Embeddings.ts"
import * as Json from "../json/Json.ts"
import { type CountCalls, oneCall } from "../call/Calls.ts"
import { type Call, notSupported, type Perform } from "../call/Protocol.ts"
import * as ClientRequest from "../dialects/conversation/ClientRequest.ts"
import type { Recipient } from "../dialects/conversation/Signature.ts"
import * as SignatureMarks from "../dialects/conversation/SignatureMarks.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import type { Sink } from "../transport/Sink.ts"
import * as ConvertedAnswer from "./ConvertedAnswer.ts"
import { exchange, type GuardedTools } from "./Exchange.ts"
import type { HttpProtocol, Relay } from "./HttpProtocol.ts"
import * as JsonExchange from "./JsonExchange.ts"
import { PassingAnswer } from "./PassingAnswer.ts"
import * as Translation from "./Translation.ts"

/** The names of the operations that a protocol serves: relayed, or translated for clients of other dialects. */
export const operationsOf = (
  { embeddings, relays }: Pick<HttpProtocol<never>, "embeddings" | "relays">
): ReadonlyArray<string> => [
  ...relays.keys(),
  ...(embeddings === undefined ? [] : Embeddings.operations),
  ...ClientDialects.operations,
  ...CountDialects.operations
]

/** Counts the calls of a protocol's operations: one for a relayed request, possibly several for a translated one. */
export const counter = (
  { chat, embeddings, relays }: {
    readonly chat: { readonly dialect: Pick<ProviderDialect<never>, "takesChoices"> }
    readonly embeddings?: EmbeddingApi.EmbeddingApi
    readonly relays: Pick<ReadonlyMap<string, unknown>, "has">
  }
): CountCalls =>
(call) => {
  const { name } = call.operation
  const calls = relays.has(name)
    ? oneCall
    : ClientDialects.operations.includes(name)
    ? Translation.callsOf(call, chat.dialect)
    : embeddings === undefined
    ? oneCall
    : EmbeddingApi.callsOf(Embeddings.textCount(call), embeddings)
  return Effect.succeed(calls)
}

/** Whether a server lacks the count of tokens, as some servers that speak a provider's dialect do. */
const isMissing = (error: JobError): boolean =>
  error._tag === "ProviderRejected" && (error.status === 404 || error.status === 405)

/** Has the provider count tokens in its own dialect, if it can. */
const counterOf = <Options>(
  { authorize, chat: { count, dialect, headers = {} } }: HttpProtocol<Options>,
  tools: GuardedTools
): Counts.Counter => {
  if (count === undefined) return TokenizerCount.count
  const exchange = JsonExchange.make(tools, Schema.Struct({ [count.tokens]: atLeast(0) }), authorize)
  const optionsOf = Options.reader(dialect.options)
  const countBy = Effect.fnUntraced(function*({ call: { endpoint, session }, conversation, losses }: ChatRequest) {
    const options = yield* optionsOf(endpoint)
    const inlined = yield* InlineMedia.inline(conversation, dialect.needsInline, tools.guard)
    const { model } = endpoint
    const fitted = ToolNames.fit(inlined, dialect.toolNames).conversation
    const request = dialect.toRequest(fitted, { model, streams: false, session, losses }, options)
    yield* losses.failIfRefused
    const body = count.toBody(Json.fields(request), model)
    const answer = yield* exchange(endpoint, { path: count.path(model), headers, body })
    return { tokens: answer[count.tokens] ?? 0, isEstimate: false }
  })
  return (request) => Effect.catchIf(countBy(request), isMissing, () => TokenizerCount.count(request))
}

/** Has the provider make vectors for clients of other dialects. */
const vectorsBy = (
  api: NonNullable<HttpProtocol<never>["embeddings"]>,
  tools: GuardedTools,
  authorize: HttpProtocol<never>["authorize"]
) => {
  const post = JsonExchange.make(tools, EmbeddingApi.answerOf(api), authorize)
  return Embeddings.performs(EmbeddingApi.make(api, post), api)
}

export const make = <Options>(protocol: HttpProtocol<Options>, tools: GuardedTools): Perform => {
  const { authorize, embeddings } = protocol
  const translations = new Map([
    ...ClientDialects.map((dialect) => Translation.translate(dialect, protocol, tools)),
    ...Counts.performs(counterOf(protocol, tools), "ordinary"),
    ...(embeddings === undefined ? [] : vectorsBy(embeddings, tools, authorize))
  ])
  const estimates = new Map(Counts.performs(TokenizerCount.count, "ordinary"))
  const { secrets, upstream } = tools
  const relayTo = (relay: Relay, call: Call, sink: Sink, recipient?: Recipient): ReturnType<Perform> => {
    const request = relay(call, recipient)
    if (request instanceof InvalidRequest) return Effect.fail(request)
    const { refusal, warnings } = recipient?.losses ?? {}
    if (refusal !== undefined) return Effect.fail(refusal)
    const { grammar = protocol.grammar, hasSeveralChoices, id, rewrite, showUsage, usage } = request
    const { sealedMember } = grammar
    const { streams } = request
    const reader = (hidden: ReadonlyArray<string>, account: () => string, clock: Clock.Clock) => {
      const mark = sealedMember === undefined ? undefined : SignatureMarks.marker(sealedMember, account)
      return new PassingAnswer({
        ...{ call, grammar, showUsage, hasSeveralChoices, usage, id, warnings },
        rewrite: mark ?? rewrite,
        secrets: hidden,
        streams,
        converted: () => ConvertedAnswer.make({ call, grammar, clock, streams, id, warnings, secrets: hidden, account })
      })
    }
    return exchange({ upstream, secrets, authorize, call, sink, request, reader })
  }
  return (call, sink) => {
    const relay = protocol.relays.get(call.operation.name)
    if (relay === undefined) return translations.get(call.operation.name)?.(call, sink) ?? notSupported(call)
    const relayed = SignatureMarks.mayHoldAny(call.body)
      ? Fiberless.flatMap(
        Endpoint.accountFor(call.endpoint, secrets),
        (account) => relayTo(relay, call, sink, { account, losses: ClientRequest.lossesOf(call, {}, "ordinary") })
      )
      : relayTo(relay, call, sink)
    const estimate = estimates.get(call.operation.name)
    return estimate === undefined ? relayed : Effect.catchIf(relayed, isMissing, () => estimate(call, sink))
  }
}
