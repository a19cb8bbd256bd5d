/**
 * What a provider protocol over HTTP is: where its operations live, what authenticates, how its answers read, and which
 * chat dialect it speaks. A client of the same dialect is relayed, any other chat client translated; see `HttpCall.ts`.
 */
import type { InvalidRequest } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { ProviderDialect } from "../dialects/conversation/Dialect.ts"
import type { Call } from "../call/Protocol.ts"
import type { AnswerGrammar } from "./AnswerGrammar.ts"

/** A request as the provider gets it. */
export interface Outgoing {
  /** Below `baseUrl`. */
  readonly path: string
  readonly body: Uint8Array
  readonly contentType: string
  readonly streams: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** The client's own request on its way. */
export interface Relayed extends Outgoing {
  /** The client asked for usage in the stream. */
  readonly showUsage: boolean
  /** How the answers of this operation read, where that is not as those of the others do. */
  readonly grammar?: AnswerGrammar
  /** What the request consumes of which the answer says nothing. */
  readonly usage?: Usage
  /** A change to the answer, which comes in pieces and is no stream. */
  readonly rewrite?: (piece: Uint8Array) => Uint8Array
}

export interface HttpProtocol<Options> {
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  /** The request of a client that speaks the provider's own dialect; `undefined` where it does not. */
  readonly relayed: (call: Call) => Relayed | InvalidRequest | undefined
  readonly grammar: AnswerGrammar
  /** For all other chat clients. */
  readonly chat: {
    readonly dialect: ProviderDialect<Options>
    readonly path: (model: string, streams: boolean) => string
    readonly headers?: Readonly<Record<string, string>>
  }
}
