/** What becomes of a provider's answer on its way to the client: it is passed on as it is, or translated. */
import type { JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { Head } from "../transport/Sink.ts"

/** Pieces for the client, or why there will be no more. */
export type Read = ReadonlyArray<Uint8Array> | JobError

export const isFailure = (read: Read): read is JobError => "_tag" in read

export interface AnswerReader {
  /** The head of the client's answer, from the provider's. */
  readonly head: (status: number, contentType: string) => Head
  /** A piece of a stream of server-sent events: what of it is for the client, up to a failure. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Uint8Array>
  /** Why nothing of the stream can follow what has come so far. Looked at after every `push`. */
  readonly failure: () => JobError | undefined
  /** The provider has ended its stream. */
  readonly end: () => Read
  /** The whole of an answer that was no stream. */
  readonly whole: (body: Uint8Array) => Read
  /** Whether an answer can be passed on as it comes, where it is too large to be held until it is whole. */
  readonly isPassable: boolean
  /** A piece of one that is passed on so: what of it is for the client. */
  readonly pass: (chunk: Uint8Array) => ReadonlyArray<Uint8Array>
  /** It has ended: why that was no whole answer. */
  readonly passed: () => JobError | undefined
  /** How much of an answer of that kind is held until it is whole, in bytes. */
  readonly holdBytes: (contentType: string) => number
  /** What was consumed, as far as what has come says so. */
  readonly usage: () => Usage | undefined
  /** The pieces of the answer, parsed, in which it says of itself what `Ending.ts` tells, once it has ended. */
  readonly ends: () => ReadonlyArray<unknown>
}
