/** Serves a chat client by a provider of another dialect, through the canonical conversation and canonical events. */
import { Clock, Effect } from "effect"
import { randomUUID } from "node:crypto"
import { type JobError, ProviderRejected } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as ClientRequest from "../dialects/conversation/ClientRequest.ts"
import type { Conversation, Setting, SettingNames } from "../dialects/conversation/Conversation.ts"
import type { ClientDialect } from "../dialects/conversation/Dialect.ts"
import * as InlineMedia from "../dialects/conversation/InlineMedia.ts"
import * as UsageSum from "../dialects/conversation/UsageSum.ts"
import type { GuardedFetch } from "../transport/GuardedFetch.ts"
import * as ProviderOptions from "../call/Options.ts"
import type { Perform } from "../call/Protocol.ts"
import type { Sink } from "../transport/Sink.ts"
import { turnFor } from "../call/RequestBody.ts"
import * as TranslationWarnings from "../call/TranslationWarnings.ts"
import { exchange, type ExchangeTools } from "./Exchange.ts"
import type { HttpProtocol } from "./HttpProtocol.ts"
import { SharedSink } from "./SharedSink.ts"
import { TranslatedAnswer, TranslatedPart } from "./TranslatedAnswer.ts"

export interface Tools extends ExchangeTools {
  readonly guard: GuardedFetch["Service"]
}

/** The most exchanges for one request. */
const maxExchanges = 8

const utf8 = new TextEncoder()

/** Returns the operation's name and its translation. */
export const translate = <Request, Options>(
  client: ClientDialect<Request>,
  { authorize, chat: { dialect, headers, path }, grammar }: HttpProtocol<Options>,
  { guard, secrets, upstream }: Tools
): readonly [string, Perform] => {
  const decode = ClientRequest.decoder(client, "ordinary")
  const optionsOf = ProviderOptions.reader(dialect.options)
  const perform: Perform = Effect.fnUntraced(function*(call, sink): Effect.fn.Return<Usage | undefined, JobError> {
    const { conversations, losses, request } = yield* decode(call)
    const options = yield* optionsOf(call.endpoint)
    const { model, name } = call.endpoint
    const streams = client.streams(request)
    if (conversations.some(({ maxTokens }) => maxTokens === 0)) {
      losses.refuseOf("maxTokens", "must be at least 1 for this model")
    }
    if (exchangesOf(conversations, dialect) > maxExchanges) {
      losses.refuseOf("choices", `must be at most ${maxExchanges} for this model, for all prompts together`)
    }
    yield* losses.failIfRefused
    const turn = turnFor(call)
    const requests: Array<Part> = []
    let firstChoice = 0
    for (const conversation of conversations) {
      const inlined = yield* InlineMedia.inline(conversation, dialect.needsInline, guard)
      yield* turn
      const request = dialect.toRequest(inlined, { model, streams, losses }, options)
      yield* turn
      const json = JSON.stringify(request)
      yield* turn
      const body = utf8.encode(json)
      const times = dialect.takesChoices ? 1 : conversation.choices
      for (let choice = 0; choice < times; choice++) requests.push({ body, firstChoice: firstChoice + choice })
      firstChoice += conversation.choices
    }
    yield* losses.failIfRefused
    const answer = new TranslatedAnswer({
      encoder: client.encoder(request, {
        id: randomUUID().replaceAll("-", ""),
        created: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
        model: call.model,
        fingerprint: undefined
      }),
      streams,
      headers: TranslationWarnings.toHeaders(losses.warnings),
      exchanges: requests.length
    })
    const usages = yield* each(requests, sink, ({ body, firstChoice }, sink) =>
      exchange({
        upstream,
        secrets,
        authorize,
        call,
        sink,
        request: {
          path: path(model, streams),
          body,
          contentType: "application/json",
          streams,
          ...(headers === undefined ? {} : { headers })
        },
        reader: (hidden) =>
          new TranslatedPart({
            answer,
            decoder: dialect.decoder(),
            grammar,
            firstChoice,
            provider: name,
            secrets: hidden
          })
      })).pipe(Effect.mapError((error) => withClientsNames(error, dialect.settings, client.settings)))
    return usages.reduce<Usage | undefined>(
      (sum, usage) => usage === undefined ? sum : UsageSum.sum(sum, usage),
      undefined
    )
  })
  return [client.operation, perform]
}

/** The request of one exchange. */
interface Part {
  readonly body: Uint8Array
  /** The index of its first choice in the whole answer. */
  readonly firstChoice: number
}

/** One per conversation, or one per choice if the provider returns only one choice. */
const exchangesOf = (
  conversations: ReadonlyArray<Conversation>,
  { takesChoices }: { readonly takesChoices: boolean }
): number => conversations.reduce((sum, { choices }) => sum + (takesChoices ? 1 : choices), 0)

/** Runs the exchanges concurrently. A failed one interrupts the others. */
const each = <A>(
  requests: ReadonlyArray<A>,
  sink: Sink,
  run: (request: A, sink: Sink) => Effect.Effect<Usage | undefined, JobError>
): Effect.Effect<ReadonlyArray<Usage | undefined>, JobError> => {
  const shared = requests.length === 1 ? sink : new SharedSink(sink)
  return Effect.forEach(requests, (request) => run(request, shared), { concurrency: "unbounded" })
}

/** Replaces the name of a rejected field by the client dialect's, or omits it if that has no such field. */
const withClientsNames = (error: JobError, provider: SettingNames, client: SettingNames): JobError => {
  if (error._tag !== "ProviderRejected" || error.param === null) return error
  const param = camelCase(error.param)
  const setting = (Object.keys(provider) as ReadonlyArray<Setting>).find((setting) => {
    const name = camelCase(provider[setting] ?? "")
    return param === name || param.startsWith(`${name}.`) || name.endsWith(`.${param}`)
  })
  const { code, message, provider: name, status, type } = error
  return new ProviderRejected({
    provider: name,
    status,
    message,
    type,
    code,
    param: setting === undefined ? null : client[setting] ?? null
  })
}

/** Google writes field names in both cases. */
const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
