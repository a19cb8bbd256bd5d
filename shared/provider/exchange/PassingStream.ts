/**
 * Passes on a streamed answer. Replaces only the model's name and a response's id. Leaves out damaged text, and events with usage that
 * the client did not ask for; adds an estimate if the client asked for usage and the provider reports none. Meters usage, and checks
 * that the provider ended the answer properly.
 */
import { isReported, latest, type Usage } from "../../contract/Usage.ts"
import type * as Json from "../json/Json.ts"
import * as JsonText from "../json/JsonText.ts"
import { dataOf, maxFrameBytes, replaceData, SseFrames } from "../../bounds/SseFrames.ts"
import { type AnswerGrammar, ContentWatch, isDone } from "./AnswerGrammar.ts"
import { Ends, keptPieces } from "./ResponseMetadata.ts"

export interface PassingStreamOptions {
  readonly grammar: AnswerGrammar
  /** Whether the client asked for usage, so that frames with nothing else are passed on. */
  readonly showUsage: boolean
  /** Whether the client asked for several choices. Then all data is read, because each choice must end. Default: false. */
  readonly hasSeveralChoices?: boolean | undefined
  /** Replaces the provider's name of the model; `undefined` leaves frames unchanged. */
  readonly alias: string | undefined
  /** Replaces the provider's id of the answer. */
  readonly id?: string | undefined
  /** Called when damaged data was skipped. */
  readonly onSkip?: () => void
}

/** The data of a frame. Parsed only if needed, which is rare. */
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
  /** The grammar's marks, and those of the model's name if it is replaced. */
  readonly #marks: RegExp
  readonly #frames = new SseFrames()
  readonly #content: ContentWatch
  /** The first and last pieces. If the provider sends no terminator, the last ones are searched for the reason of the end. */
  readonly #pieces = new Ends<Piece>()
  /** The pieces with new text. */
  readonly #texts: Ends<Piece>
  #terminated = false
  /** Whether a reason why the answer ends has arrived. */
  #hasReason = false
  /** Whether the frame that clients wait for at the end has arrived. */
  #isClosed = false
  /** If there may be several choices: whether each of those so far has ended, by its index. */
  readonly #ended = new Map<number, boolean>()
  /** The frame that ends the stream, if usage that is still missing must precede it. */
  #terminator: Uint8Array | undefined
  #usage: Usage | undefined
  /** Whether usage is where clients look for it. */
  hasShownUsage = false
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
    this.#texts = grammar.newText === undefined ? this.#pieces : new Ends()
    this.#marks = alias === undefined ? grammar.marks : withNames(grammar)
  }

  /** Whether data is read even if it matches no mark. */
  get #readsAll(): boolean {
    return this.#content.isActive || this.#options.hasSeveralChoices === true
  }

  /** Returns the client's part of a chunk, up to a `failure`. */
  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    const out: Array<Uint8Array> = []
    const text = latin1(chunk)
    const firstMark = firstOf(this.#marks, text)
    if (!this.#content.hasContent) this.#content.look(text.slice(0, firstMark))
    let at = 0
    while (at < chunk.length) {
      if (this.#frames.restBytes === 0 && !this.#readsAll) {
        const end = this.#passPlain(chunk, at, firstMark)
        if (end > at) append(out, chunk.subarray(at, end))
        at = end
      }
      const end = at < firstMark ? endOfFrame(chunk, at) : chunk.length
      // a frame that began in an earlier chunk is always read, because only its end was searched
      let frameEnd = this.#frames.restBytes === 0 ? at : Infinity
      for (const frame of this.#frames.push(chunk.subarray(at, end))) {
        frameEnd += frame.length
        const kept = this.#take(frame, frameEnd <= firstMark)
        if (kept === "malformed" || kept === "error") {
          this.failure = kept
          return out
        }
        if (kept !== undefined) append(out, kept)
      }
      at = end
    }
    if (this.#frames.restBytes > maxFrameBytes) this.failure = "malformed"
    return out
  }

  /**
   * The provider has ended its body. Returns the last frame, with a blank line, if it lacks only that and completes the answer; drops
   * an incomplete frame. Without the blank line, readers that follow the standard would drop the frame, and join it to the next one.
   */
  end(): Uint8Array | undefined | "error" {
    const { rest } = this.#frames
    const kept = rest.length === 0 ? undefined : this.#take(Buffer.concat([rest, blankLine]), false)
    if (kept === "error") return kept
    return kept === "malformed" || !this.isComplete ? undefined : kept
  }

  /** Whether the answer is complete. */
  get isComplete(): boolean {
    return !this.#content.isAfterGap && (this.#terminated || this.#isEnded)
  }

  /** Whether the provider has sent the reason why the answer ends. */
  get #isEnded(): boolean {
    const { grammar } = this.#options
    return this.#ended.size === 0
      ? this.#hasReason || this.#pieces.last.some(({ fields }) => fields !== undefined && grammar.isLast(fields))
      : [...this.#ended.values()].every(Boolean)
  }

  /** Whether a part of the answer itself has arrived. */
  get hasContent(): boolean {
    return this.#content.hasContent
  }

  /** The usage reported so far. If a provider reports it in every frame, the last frames count. */
  get usage(): Usage | undefined {
    const { last } = this.#pieces
    let usage = this.#usage
    for (const { fields } of last.slice(Math.max(0, last.length - this.#since))) {
      if (fields !== undefined) usage = latest(usage, this.#options.grammar.read(fields, usage).usage)
    }
    return usage
  }

  /** See `AnswerReader`. */
  get textBytes(): number {
    return this.#texts.textBytes
  }

  /** The frame that clients wait for at the end of a complete answer, if the provider has not sent it. */
  get closing(): ReadonlyArray<Uint8Array> {
    const { closing } = this.#options.grammar
    return closing === undefined || this.#isClosed ? [] : [closing.frame]
  }

  /** The frames that end a stream without usage: a piece like the last one with nothing but usage, and the terminator. */
  endWith(usage: object): ReadonlyArray<Uint8Array> {
    const { grammar } = this.#options
    const piece = Buffer.from(JSON.stringify({ ...this.#pieces.last.at(-1)?.fields, choices: [], usage }))
    const data = rename(piece, grammar, this.#options) ?? piece
    const frame = Buffer.concat([Buffer.from("data: "), data, Buffer.from("\n\n")])
    return this.#terminator === undefined ? [frame, ...this.closing] : [frame, this.#terminator]
  }

  /** See `AnswerReader`. */
  get ends(): ReadonlyArray<unknown> {
    return this.#pieces.all.map(({ fields }) => fields)
  }

  /**
   * Passes on the plain frames between `from` and `until` without cutting them out of their chunk, and returns the end of the last one.
   * A plain frame, as nearly all are, is one line of data with an object, and a blank line.
   */
  #passPlain(chunk: Uint8Array, from: number, until: number): number {
    const ends: Array<number> = []
    let at = from
    while (at < until && begins(chunk, at)) {
      const newlineAt = chunk.indexOf(newline, at)
      if (chunk[newlineAt - 1] !== closingBrace || chunk[newlineAt + 1] !== newline || newlineAt + 2 > until) break
      at = newlineAt + 2
      ends.push(at)
    }
    const pass = (index: number) => this.#pass(new Piece(plainData(chunk, ends[index - 1] ?? from, ends[index] ?? at)))
    const firstKept = this.#texts === this.#pieces ? ends.length - keptPieces : 0
    if (firstKept > 1) {
      pass(0)
      const [first = at, last = at] = [ends[0], ends[firstKept - 1]]
      this.#pieces.passOver(firstKept - 1, last - first - (firstKept - 1) * plainBytes)
      this.#since += firstKept - 1
    }
    for (let index = firstKept > 1 ? firstKept : 0; index < ends.length; index++) pass(index)
    return at
  }

  /** Returns the client's part of a frame. */
  #take(frame: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    const data = dataOf(frame)
    // a comment, or an event without data
    if (data === undefined) return frame
    const { done } = this.#options.grammar
    if (!isDone(data)) return this.#read(frame, data, isOrdinary)
    if (done !== "ends") return done === "passed" ? frame : undefined
    this.#terminated = true
    if (!this.#options.showUsage || (isReported(this.usage) && this.hasShownUsage)) return frame
    this.#terminator = frame
    return undefined
  }

  #read(frame: Uint8Array, data: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    const { grammar, onSkip, showUsage } = this.#options
    const piece = new Piece(data)
    const isUnread = !this.#readsAll && isObject(data) &&
      (isOrdinary || firstOf(grammar.marks, latin1(data)) === data.length)
    if (isUnread) {
      this.#pass(piece)
      return isOrdinary ? frame : this.#renamed(frame, data)
    }
    const { fields } = piece
    if (fields === undefined) {
      if (!this.#content.skip(data, this.#pieces.last.map(({ fields }) => fields))) return "malformed"
      onSkip?.()
      return undefined
    }
    this.#pass(piece)
    const { isElsewhere, isError, isOnlyUsage, usage } = grammar.read(fields, this.#usage)
    if (isError === true) {
      this.errorData = data
      return "error"
    }
    if (this.#content.isActive && !this.#content.see(fields)) return "malformed"
    this.#seeChoices(fields)
    this.#hasReason ||= grammar.isLast(fields)
    this.#isClosed ||= grammar.closing?.isIn(fields) === true
    if (usage !== undefined) {
      this.#usage = latest(this.#usage, usage)
      this.#since = 0
      this.hasShownUsage ||= isElsewhere !== true && isReported(usage)
    }
    if (isOnlyUsage === true && !(showUsage && isReported(usage))) return undefined
    return this.#renamed(frame, data)
  }

  #seeChoices(fields: Json.Fields): void {
    const { grammar: { choicesIn }, hasSeveralChoices } = this.#options
    if (hasSeveralChoices !== true || choicesIn === undefined) return
    for (const { index, isLast } of choicesIn(fields)) {
      this.#ended.set(index, isLast || this.#ended.get(index) === true)
    }
  }

  /** The frame with the alias and the gateway's id. */
  #renamed(frame: Uint8Array, data: Uint8Array): Uint8Array {
    const renamed = rename(data, this.#options.grammar, this.#options)
    return renamed === undefined ? frame : replaceData(frame, data, renamed)
  }

  #pass(piece: Piece): void {
    this.#pieces.pass(piece)
    if (this.#options.grammar.newText?.data.test(latin1(piece.data)) === true) this.#texts.pass(piece)
    this.#since++
  }
}

const marksWithNames = new WeakMap<AnswerGrammar, RegExp>()

const withNames = (grammar: AnswerGrammar): RegExp => {
  let marks = marksWithNames.get(grammar)
  if (marks === undefined) {
    const names = grammar.modelPaths.map((path) => `${path.at(-1)}"`)
    marks = new RegExp([grammar.marks.source, ...names].join("|"))
    marksWithNames.set(grammar, marks)
  }
  return marks
}

/** Ends a frame, whether or not its last line has ended. */
const blankLine = Buffer.from("\n\n")

const newline = 0x0a
const closingBrace = 0x7d

const latin1 = (data: Uint8Array): string =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1")

/** The index of the first mark, from which on frames must be read; the length of the text if there is none. */
const firstOf = (marks: RegExp, text: string): number => {
  const at = text.search(marks)
  return at === -1 ? text.length : at
}

const plainBeginning = Buffer.from("data: {")

/** The size of a plain frame without its data, in bytes. */
const plainBytes = plainBeginning.length + 1

const begins = (bytes: Uint8Array, from: number): boolean => {
  for (let at = 0; at < plainBeginning.length; at++) if (bytes[from + at] !== plainBeginning[at]) return false
  return true
}

const plainData = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  bytes.subarray(start + plainBeginning.length - 1, end - 2)

/** The end of the frame that begins here; the end of the bytes if there is no blank line, or one of another kind. */
const endOfFrame = (bytes: Uint8Array, from: number): number => {
  for (let at = bytes.indexOf(newline, from); at !== -1; at = bytes.indexOf(newline, at + 1)) {
    if (bytes[at + 1] === newline) return at + 2
  }
  return bytes.length
}

/** The JSON with another model name and another id; `undefined` if nothing changes. */
export const rename = (
  data: Uint8Array,
  { idPaths = [], modelPaths }: AnswerGrammar,
  { alias, id }: Pick<PassingStreamOptions, "alias" | "id">
): Uint8Array | undefined => {
  const named = alias === undefined ? undefined : setFirst(data, modelPaths, alias)
  return (id === undefined ? undefined : setFirst(named ?? data, idPaths, id)) ?? named
}

/** The JSON with another value at the first of these paths that exists. */
const setFirst = (
  data: Uint8Array,
  paths: ReadonlyArray<ReadonlyArray<string>>,
  value: string
): Uint8Array | undefined => {
  const members = JsonText.members(data) ?? []
  for (const path of paths) {
    const changed = JsonText.setAt(data, members, path, value)
    if (changed !== undefined) return changed
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
