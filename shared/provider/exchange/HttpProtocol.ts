/**
 * The description of a provider protocol over HTTP: the paths of its operations, its authentication, the grammar of its answers and its
 * chat dialect. `HttpCall.ts` makes the calls.
 */
import type { InvalidRequest } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { ProviderDialect } from "../dialects/conversation/Dialect.ts"
import type { Recipient } from "../dialects/conversation/Signature.ts"
import type { EmbeddingApi } from "../dialects/embeddings/EmbeddingApi.ts"
import type * as Embeddings from "../dialects/embeddings/Embeddings.ts"
import type { Call } from "../call/Protocol.ts"
import type { Fields } from "../json/Json.ts"
import type { AnswerGrammar } from "./AnswerGrammar.ts"

export interface Outgoing {
  /** The path below `baseUrl`. */
  readonly path: string
  /** `undefined` for a GET. */
  readonly body: Uint8Array | undefined
  readonly contentType: string
  readonly streams: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the catalogue's timeouts if it is shorter. Milliseconds. */
  readonly withinMs?: number
  /** Whether no usage is estimated if the answer reports none. */
  readonly noEstimate?: boolean
}

export interface Relayed extends Outgoing {
  /** Whether the client asked for usage in the stream. Only for grammars with pieces that hold nothing but usage. */
  readonly showUsage?: boolean
  /** Whether the client asked for several choices in a stream. Default: false. */
  readonly hasSeveralChoices?: boolean
  /** The grammar of this operation's answers, if it differs from the protocol's. */
  readonly grammar?: AnswerGrammar
  /** The gateway's id of the answer. */
  readonly id?: string
  /** Usage that the answer does not report. */
  readonly usage?: Usage
  /** Edits the pieces of an answer. */
  readonly rewrite?: (piece: Uint8Array) => Uint8Array
}

/** Makes the relayed request. `recipient` is given if the client's request may hold reasoning of several providers. */
export type Relay = (call: Call, recipient?: Recipient) => Relayed | InvalidRequest

export interface HttpProtocol<Options> {
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  /** The relays for operations in the provider's dialect, by the operation's name. */
  readonly relays: ReadonlyMap<string, Relay>
  readonly grammar: AnswerGrammar
  /** How to make vectors for clients of other dialects. Absent if the provider makes none. */
  readonly embeddings?: EmbeddingApi & Embeddings.Settings
  /** How to serve chat clients of other dialects. */
  readonly chat: {
    readonly dialect: ProviderDialect<Options>
    readonly path: (model: string, streams: boolean) => string
    readonly headers?: Readonly<Record<string, string>>
    /** How the provider counts the tokens of a request in its dialect. Absent if it does not. */
    readonly count?: {
      readonly path: (model: string) => string
      readonly toBody: (request: Fields, model: string) => object
      /** The field of the answer with the number of tokens. */
      readonly tokens: string
    }
  }
}
