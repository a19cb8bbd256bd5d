/** How to read a provider's answers that are passed on: the few places that the gateway looks at. */
import type { Usage } from "../../contract/Usage.ts"
import type { Fields } from "../json/Json.ts"

/** Usage and errors in a piece of an answer. */
export interface Reading {
  /** The usage reported so far. */
  readonly usage?: Usage | undefined
  /** The provider reports an error instead of an answer. */
  readonly isError?: boolean
  /** It holds nothing but usage. */
  readonly isOnlyUsage?: boolean
}

export interface AnswerGrammar {
  /** The data that ends a stream and is not JSON. */
  readonly terminator?: Buffer
  /** Stream data without any of these is passed on unread. */
  readonly marks: ReadonlyArray<Buffer>
  /** Where the model's name may be. */
  readonly modelPaths: ReadonlyArray<ReadonlyArray<string>>
  /** Reads stream data, or a whole answer. `before` is the usage reported until then. */
  readonly read: (data: Fields, before: Usage | undefined) => Reading
  /** Encodes usage that the provider has not reported, for answers that should report it. */
  readonly toUsage?: (usage: Usage) => object
  /** Whether stream data contains the reason why the answer ends. Only the last pieces are checked. */
  readonly isLast: (data: Fields) => boolean
}
