/** How the answers of a provider read where they are passed on: where the few places are that the gateway looks at. */
import type { Usage } from "../../contract/Usage.ts"
import type { Fields } from "../json/Json.ts"

/** What a piece of an answer says beside the answer itself. */
export interface Reading {
  /** All that is known of it by now. */
  readonly usage?: Usage | undefined
  /** The provider reports an error in the place of an answer. */
  readonly isError?: boolean
  /** It says what was consumed and nothing else. */
  readonly isOnlyUsage?: boolean
}

export interface AnswerGrammar {
  /** Data of a stream that is no JSON and ends it. */
  readonly terminator?: Buffer
  /** Data of a stream that holds none of these is passed on unread. */
  readonly marks: ReadonlyArray<Buffer>
  /** Where the model's name may stand. */
  readonly modelPaths: ReadonlyArray<ReadonlyArray<string>>
  /** Reads data of a stream, or a whole answer. `before` is what was known of usage until then. */
  readonly read: (data: Fields, before: Usage | undefined) => Reading
  /** Whether data of a stream says why the answer ends. Asked of the last ones only. */
  readonly isLast: (data: Fields) => boolean
}
