/** Serves a chat client by a provider of another dialect, through the canonical conversation and canonical events. */
import { Effect } from "effect"
import { type JobError, ProviderRejected } from "../../contract/JobError.ts"
import { choicesOf } from "../../contract/TokenEstimate.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as ClientRequest from "../dialects/conversation/ClientRequest.ts"
import { seedsOf, type Setting, type SettingNames } from "../dialects/conversation/Conversation.ts"
import { type ClientDialect, newIdentity, type ProviderDialect } from "../dialects/conversation/Dialect.ts"
import * as CallPairs from "../dialects/fitting/CallPairs.ts"
import * as InlineMedia from "../dialects/conversation/InlineMedia.ts"
import * as Signature from "../dialects/conversation/Signature.ts"
import * as SignatureMarks from "../dialects/conversation/SignatureMarks.ts"
import * as TextUsage from "../dialects/conversation/TextUsage.ts"
import * as ToolNames from "../dialects/fitting/ToolNames.ts"
import * as ProviderOptions from "../call/Options.ts"
import { type Calls, oneCall } from "../call/Calls.ts"
import * as PaidParts from "../call/PaidParts.ts"
import type { Call, Perform } from "../call/Protocol.ts"
import { turnFor } from "../call/RequestBody.ts"
import * as JsonText from "../json/JsonText.ts"
import * as TranslationWarnings from "../call/TranslationWarnings.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import { exchange, type GuardedTools } from "./Exchange.ts"
import type { HttpProtocol } from "./HttpProtocol.ts"
import { SharedSink } from "../transport/SharedSink.ts"
import { TranslatedAnswer, TranslatedPart } from "./TranslatedAnswer.ts"

/** Maximum number of exchanges for one request. */
const maxExchanges = 8

/** Maximum size of all bodies that differ only in their seed, in bytes. */
const maxSeededBytes = 64 * 1024 * 1024

const utf8 = new TextEncoder()

const exchangesFor = (choices: number, { takesChoices }: Pick<ProviderDialect<never>, "takesChoices">): number =>
  takesChoices ? 1 : choices

/** The exchanges of a translated request, which all run at the same time. A request that would need too many is refused. */
export const callsOf = ({ body }: Pick<Call, "body">, dialect: Pick<ProviderDialect<never>, "takesChoices">): Calls => {
  const { choices, prompts } = choicesOf(JsonText.fieldsOf(body))
  const all = prompts * exchangesFor(choices, dialect)
  return all > maxExchanges ? oneCall : { all, atOnce: all }
}

/** Returns the operation's name and its translation. */
export const translate = <Request, Options>(
  client: ClientDialect<Request>,
  { authorize, chat: { dialect, headers, path }, grammar }: HttpProtocol<Options>,
  { guard, secrets, upstream }: GuardedTools
): readonly [string, Perform] => {
  const decode = ClientRequest.decoder(client, "ordinary")
  const optionsOf = ProviderOptions.reader(dialect.options)
  const perform: Perform = Effect.fnUntraced(function*(call, sink): Effect.fn.Return<Usage | undefined, JobError> {
    const { conversations: given, losses, request } = yield* decode(call)
    const conversations = SignatureMarks.mayHoldAny(call.body)
      ? yield* Effect.map(
        Endpoint.accountFor(call.endpoint, secrets),
        (account) => given.map((conversation) => Signature.withoutForeign(conversation, account))
      )
      : given
    const options = yield* optionsOf(call.endpoint)
    const { model, name } = call.endpoint
    const streams = client.streams(request)
    if (conversations.some(({ maxTokens }) => maxTokens === 0)) {
      losses.refuseOf("maxTokens", "must be at least 1 for this model")
    }
    if (conversations.reduce((sum, { choices }) => sum + exchangesFor(choices, dialect), 0) > maxExchanges) {
      losses.refuseOf("choices", `must be at most ${maxExchanges} for this model, for all prompts together`)
    }
    for (const conversation of conversations) CallPairs.record(conversation, dialect.pairsCalls, losses)
    yield* losses.failIfRefused
    const turn = turnFor(call)
    /** The body of each exchange, the client's names of its tools, and the index of its first choice in the whole answer. */
    const requests: Array<
      Pick<ToolNames.Fitted, "originals"> & { readonly body: Uint8Array; readonly firstChoice: number }
    > = []
    let firstChoice = 0
    for (const conversation of conversations) {
      const inlined = yield* InlineMedia.inline(conversation, dialect.needsInline, guard)
      const { conversation: fitted, originals } = ToolNames.fit(inlined, dialect.toolNames)
      const times = exchangesFor(conversation.choices, dialect)
      const seeds = dialect.settings.seed === undefined ? [undefined] : seedsOf(conversation, times)
      // calls without seeds of their own share a body
      const sharers = times / seeds.length
      for (const [index, seed] of seeds.entries()) {
        yield* turn
        const target = { model, streams, session: call.session, losses }
        const request = dialect.toRequest(seed === undefined ? fitted : { ...fitted, seed }, target, options)
        yield* turn
        const json = JSON.stringify(request)
        yield* turn
        const body = utf8.encode(json)
        if (index === 0 && seeds.length > 1 && body.length * seeds.length > maxSeededBytes) {
          losses.refuseOf("choices", "must be 1 for so large a request with a seed")
          break
        }
        for (let choice = 0; choice < sharers; choice++) {
          requests.push({ body, originals, firstChoice: firstChoice + index + choice })
        }
      }
      firstChoice += conversation.choices
    }
    yield* losses.failIfRefused
    const answer = new TranslatedAnswer({
      encoder: client.encoder(request, yield* newIdentity(call.answersAs)),
      streams,
      headers: TranslationWarnings.toHeaders(losses.warnings),
      exchanges: requests.length,
      isTextRequest: TextUsage.isText(conversations)
    })
    const shared = requests.length === 1 ? sink : new SharedSink(sink)
    // a failed exchange interrupts the others
    yield* PaidParts.metered(call, (paid) =>
      Effect.forEach(requests, ({ body, firstChoice, originals }) =>
        exchange({
          upstream,
          secrets,
          authorize,
          call: { ...call, onCut: paid },
          sink: shared,
          request: {
            path: path(model, streams),
            body,
            contentType: "application/json",
            streams,
            ...(headers === undefined ? {} : { headers })
          },
          reader: (secrets, account) =>
            new TranslatedPart({
              answer,
              decoder: ToolNames.restoring(dialect.decoder(), originals),
              grammar,
              firstChoice,
              provider: name,
              secrets,
              account
            })
        }).pipe(
          Effect.map(paid)
        ), { concurrency: "unbounded", discard: true })).pipe(
        Effect.mapError((error) => withClientsNames(error, dialect.settings, client.settings))
      )
    return answer.usage
  })
  return [client.operation, perform]
}

/** Replaces the name of a rejected field with its name in the client's dialect, or omits it if the dialect has no such field. */
const withClientsNames = (error: JobError, providers: SettingNames, clients: SettingNames): JobError => {
  if (error._tag !== "ProviderRejected" || error.param === null) return error
  const rejected = camelCase(error.param)
  const setting = (Object.keys(providers) as ReadonlyArray<Setting>).find((setting) => {
    const name = camelCase(providers[setting] ?? "")
    return rejected === name || rejected.startsWith(`${name}.`) || name.endsWith(`.${rejected}`)
  })
  const { code, message, provider, status, type } = error
  const param = setting === undefined ? null : clients[setting] ?? null
  return new ProviderRejected({ provider, status, message, type, code, param })
}

/** Google writes field names in both cases. */
const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
