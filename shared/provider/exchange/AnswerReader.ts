/** The interface of readers of a provider's answer: they pass it on, translate it, or decode it as a whole. */
import type { JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { Head } from "../transport/Sink.ts"

/** Maximum size of an answer that is held as a whole, in bytes: several hundred vectors or ten images. */
export const maxWholeBytes = 64 * 1024 * 1024

/** Pieces of the client's answer. */
type Pieces = ReadonlyArray<Uint8Array>

/** Makes the end of an answer without usage from an estimate of the usage. */
type Unmetered = (estimate: Usage) => Pieces

/** Pieces for the client, or the error that ends the answer. */
export type Read = Pieces | Unmetered | JobError

export const isFailure = (read: Read): read is JobError => "_tag" in read

/** The words for an answer in the other form than the request's. */
export const wrongForm = (isStream: boolean): string =>
  isStream ? "it is a stream, which the request does not ask for" : "it is no stream, which the request asks for"

/** Without `push`, a reader gets streams as a whole. Without `pass`, the call fails if an answer is too large to hold. */
export interface AnswerReader {
  /** Maximum number of bytes of an answer of this kind to hold until it is complete. */
  readonly holdBytes: (contentType: string) => number
  /**
   * The reader for an answer in this form, because some servers ignore `stream` in the request; `undefined` if there is none, so that the
   * call fails. The first bytes decide the form, because servers also mislabel it. If absent, the content type decides, and this reader
   * reads both forms.
   */
  readonly inForm?: ((isStream: boolean) => AnswerReader | undefined) | undefined
  /** Reads a whole answer. */
  readonly whole: (body: Uint8Array) => Read
  /** The head of the client's answer, from the provider's. */
  readonly head: (status: number, contentType: string) => Head
  /** Reads a piece of a stream of server-sent events. Returns the client's part of it, up to a failure. */
  readonly push?: (chunk: Uint8Array) => ReadonlyArray<Uint8Array>
  /** Why the stream cannot continue. Checked after every `push`. */
  readonly failure?: () => JobError | undefined
  /**
   * Whether a part of the answer itself has arrived. Until then the pieces are held back, so that another provider can be tried.
   * Default: true from the first piece on.
   */
  readonly hasContent?: () => boolean
  /** The provider has ended its stream. */
  readonly end?: () => Read
  /** Passes on a piece of an answer that is too large to hold. Returns the client's part of it. */
  readonly pass?: (chunk: Uint8Array) => ReadonlyArray<Uint8Array>
  /** The end of an answer that was passed on in pieces. Returns why the answer is incomplete, if it is. */
  readonly endPassing?: () => JobError | undefined
  /** The usage that the answer has reported so far. */
  readonly usage: () => Usage | undefined
  /** The size of the answer's text so far, in bytes, to estimate usage that is not reported. Without it nothing is estimated. */
  readonly textBytes?: () => number
  /** The parsed pieces that hold the response's metadata, once the answer has ended. */
  readonly ends: () => ReadonlyArray<unknown>
}
