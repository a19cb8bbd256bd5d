/**
 * Passes a streamed answer on. Replaces only the model's name by the alias, meters usage, adds an estimate if the client asked
 * for usage and there is none, and checks that the provider ended the answer properly.
 */
import { isReported, type Usage } from "../../contract/Usage.ts"
import type * as Json from "../json/Json.ts"
import * as JsonText from "../json/JsonText.ts"
import { dataOf, maxFrameBytes, replaceData, SseFrames } from "../transport/SseFrames.ts"
import { type AnswerGrammar, ContentWatch } from "./AnswerGrammar.ts"
import { Ends } from "./ResponseMetadata.ts"

export interface PassingStreamOptions {
  readonly grammar: AnswerGrammar
  /** The client asked for usage, so frames that hold nothing else are passed on. */
  readonly showUsage: boolean
  /** Replaces the provider's name of the model; `undefined` leaves frames unchanged. */
  readonly alias: string | undefined
  /** Called when damaged data was skipped. */
  readonly onSkip?: () => void
}

/** The data of a frame, parsed only if needed, which is rare. */
class Piece {
  readonly data: Uint8Array
  #fields: Json.Fields | undefined

  get size(): number {
    return this.data.length
  }

  get json(): Json.Fields | undefined {
    return this.fields
  }

  constructor(data: Uint8Array) {
    this.data = data
  }

  get fields(): Json.Fields | undefined {
    return this.#fields ??= JsonText.parsed(this.data)
  }
}

export class PassingStream {
  readonly #options: PassingStreamOptions
  readonly #marks: ReadonlyArray<Buffer>
  readonly #frames = new SseFrames()
  readonly #content: ContentWatch
  /** If the provider sends no terminator, the last pieces are searched for the reason why the answer ended. */
  readonly #pieces = new Ends<Piece>()
  #terminated = false
  /** The frame that ends the stream, if usage that is still missing must precede it. */
  #terminator: Uint8Array | undefined
  #usage: Usage | undefined
  /** Number of pieces after the last one with usage. */
  #since = 0
  /** Why the stream has failed. */
  failure: "malformed" | "error" | undefined
  /** The data in which the provider has reported an error. */
  errorData: Uint8Array | undefined

  constructor(options: PassingStreamOptions) {
    const { alias, grammar } = options
    this.#options = options
    this.#content = new ContentWatch(grammar)
    this.#marks = alias === undefined
      ? grammar.marks
      : [...grammar.modelPaths.map((path) => Buffer.from(`"${path.at(-1)}"`)), ...grammar.marks]
  }

  /** Returns the client's part of a chunk, up to a `failure`. */
  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    const out: Array<Uint8Array> = []
    // searched once in the whole chunk, unless a frame began in an earlier chunk
    const firstMark = this.#frames.restBytes === 0 ? this.#firstMark(chunk) : 0
    let end = 0
    for (const frame of this.#frames.push(chunk)) {
      end += frame.length
      const kept = this.#take(frame, end <= firstMark)
      if (kept === "malformed" || kept === "error") {
        this.failure = kept
        return out
      }
      if (kept !== undefined) append(out, kept)
    }
    if (this.#frames.restBytes > maxFrameBytes) this.failure = "malformed"
    return out
  }

  /**
   * The provider has ended its body. Returns the last frame if only its blank line is missing and it completes the answer;
   * an incomplete frame is dropped.
   */
  end(): Uint8Array | undefined | "error" {
    const { rest } = this.#frames
    const kept = rest.length === 0 ? undefined : this.#take(rest, false)
    if (kept === "error") return kept
    return kept === "malformed" || !this.isComplete ? undefined : kept
  }

  /** Whether the answer is complete. */
  get isComplete(): boolean {
    const { grammar } = this.#options
    return !this.#content.isAfterGap && (this.#terminated ||
      this.#pieces.last.some(({ fields }) => fields !== undefined && grammar.isLast(fields)))
  }

  /** Whether a part of the answer itself has arrived. */
  get hasContent(): boolean {
    return this.#content.hasContent
  }

  /** The usage reported so far. A provider may report it in every frame: then the last frames count. */
  get usage(): Usage | undefined {
    const { last } = this.#pieces
    let usage = this.#usage
    for (const { fields } of last.slice(Math.max(0, last.length - this.#since))) {
      if (fields !== undefined) usage = this.#options.grammar.read(fields, usage).usage ?? usage
    }
    return usage
  }

  /** See `AnswerReader`. */
  get textBytes(): number {
    return this.#pieces.textBytes
  }

  /** The frames that end a stream without usage: a piece like the last one with nothing but usage, and the terminator. */
  endWith(usage: object): ReadonlyArray<Uint8Array> {
    const { alias, grammar } = this.#options
    const piece = Buffer.from(JSON.stringify({ ...this.#pieces.last.at(-1)?.fields, choices: [], usage }))
    const data = alias === undefined ? piece : rename(piece, grammar, alias) ?? piece
    const frame = Buffer.concat([Buffer.from("data: "), data, Buffer.from("\n\n")])
    return this.#terminator === undefined ? [frame] : [frame, this.#terminator]
  }

  /** See `AnswerReader`. */
  get ends(): ReadonlyArray<unknown> {
    return this.#pieces.all.map(({ fields }) => fields)
  }

  /** Returns the client's part of a frame. */
  #take(frame: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    const data = dataOf(frame)
    // a comment, or an event without data
    if (data === undefined) return frame
    const { terminator } = this.#options.grammar
    if (
      terminator === undefined || data.length > terminator.length + 2 || !Buffer.from(data).includes(terminator)
    ) return this.#read(frame, data, isOrdinary)
    this.#terminated = true
    if (!this.#options.showUsage || isReported(this.usage)) return frame
    this.#terminator = frame
    return undefined
  }

  #read(frame: Uint8Array, data: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    const { alias, grammar, onSkip, showUsage } = this.#options
    const piece = new Piece(data)
    if (!this.#content.isActive && isObject(data) && (isOrdinary || this.#firstMark(data) === data.length)) {
      this.#pass(piece)
      return frame
    }
    const { fields } = piece
    if (fields === undefined) {
      if (!this.#content.skip(data, this.#pieces.last.map(({ fields }) => fields))) return "malformed"
      onSkip?.()
      return undefined
    }
    this.#pass(piece)
    const { isError, isOnlyUsage, usage } = grammar.read(fields, this.#usage)
    if (isError === true) {
      this.errorData = data
      return "error"
    }
    if (this.#content.isActive && !this.#content.see(fields)) return "malformed"
    if (usage !== undefined) {
      this.#usage = usage
      this.#since = 0
    }
    if (isOnlyUsage === true && !(showUsage && isReported(usage))) return undefined
    if (alias === undefined) return frame
    const renamed = rename(data, grammar, alias)
    return renamed === undefined ? frame : replaceData(frame, data, renamed)
  }

  #pass(piece: Piece): void {
    this.#pieces.pass(piece)
    this.#since++
  }

  /** Index of the first mark, from which on frames must be read; the length if there is none. */
  #firstMark(data: Uint8Array): number {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    let first = data.length
    for (const mark of this.#marks) {
      const at = bytes.indexOf(mark)
      if (at !== -1 && at < first) first = at
    }
    return first
  }
}

/** JSON with another name of the model; `undefined` if it names none. */
export const rename = (
  data: Uint8Array,
  { modelPaths }: AnswerGrammar,
  alias: string
): Uint8Array | undefined => {
  const members = JsonText.members(data) ?? []
  for (const path of modelPaths) {
    const renamed = JsonText.setAt(data, members, path, alias)
    if (renamed !== undefined) return renamed
  }
  return undefined
}

const isObject = (data: Uint8Array): boolean => data[0] === 0x7b && data[data.length - 1] === 0x7d

/** Adds a frame. Joins it to the last one without a copy if they are adjacent in memory. */
const append = (out: Array<Uint8Array>, frame: Uint8Array): void => {
  const last = out.at(-1)
  if (last !== undefined && last.buffer === frame.buffer && last.byteOffset + last.length === frame.byteOffset) {
    out[out.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + frame.length)
  } else out.push(frame)
}
