/**
 * Converts an answer of the client's own dialect whose form is not the one that the client asked for: the events of a stream to a whole answer,
 * or a whole answer to a stream. Both are decoded and encoded as in a translation, so that members which no other dialect has are lost.
 */
import { type Clock, Option, Schema } from "effect"
import type { Call } from "../call/Protocol.ts"
import * as TranslationWarnings from "../call/TranslationWarnings.ts"
import * as ClientDialects from "../dialects/ClientDialects.ts"
import { identityAt } from "../dialects/conversation/Dialect.ts"
import * as Json from "../json/Json.ts"
import type { AnswerGrammar } from "./AnswerGrammar.ts"
import type { AnswerReader } from "./AnswerReader.ts"
import { TranslatedAnswer, TranslatedPart } from "./TranslatedAnswer.ts"

export interface ConvertedOptions {
  readonly call: Call
  readonly grammar: AnswerGrammar
  readonly clock: Clock.Clock
  /** Whether the client wants a stream. */
  readonly streams: boolean
  /** The gateway's id of the answer. */
  readonly id?: string | undefined
  readonly warnings?: ReadonlyArray<string> | undefined
  readonly secrets: ReadonlyArray<string>
  readonly account: () => string
}

type Make = (options: ConvertedOptions) => AnswerReader | undefined

/** The readers by the name of the chat operation. */
const makes: ReadonlyMap<string, Make> = new Map(
  ClientDialects.map((client): [string, Make] => {
    const decode = Schema.decodeUnknownOption(client.request)
    return [client.operation, ({ account, call, clock, grammar, id, secrets, streams, warnings = [] }) => {
      const request = decode(Json.parse(Json.decodeText(call.body)))
      if (Option.isNone(request)) return undefined
      const answer = new TranslatedAnswer({
        encoder: client.encoder(request.value, { ...identityAt(clock, call.answersAs), givenId: id }),
        streams,
        headers: TranslationWarnings.toHeaders(warnings),
        exchanges: 1,
        isTextRequest: false
      })
      const decoder = client.continuation.decoder()
      return new TranslatedPart({
        answer,
        decoder,
        grammar,
        firstChoice: 0,
        provider: call.endpoint.name,
        secrets,
        account
      })
    }]
  })
)

/** Makes the reader; `undefined` if the answer cannot be converted. */
export const make: Make = (options) => makes.get(options.call.operation.name)?.(options)
