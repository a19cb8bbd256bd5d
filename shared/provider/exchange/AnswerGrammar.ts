/** How to read a provider's answers that are passed on: describes the few places that the gateway looks at. */
import type { Usage } from "../../contract/Usage.ts"
import * as FinishReasons from "../dialects/finish/FinishReasons.ts"
import * as Json from "../json/Json.ts"

/** Usage and errors in a piece of an answer. */
export interface Reading {
  /** The usage reported so far. */
  readonly usage?: Usage | undefined
  /** Whether the usage is only where clients do not look for it. Default: false. */
  readonly isElsewhere?: boolean
  /** The provider reports an error instead of an answer. */
  readonly isError?: boolean
  /** The piece holds nothing but usage. */
  readonly isOnlyUsage?: boolean
}

/**
 * Matches JSON in latin1 that has a member with one of these names and a value other than `null`; may also match other JSON. OpenAI
 * sends a usage of `null` with every piece. A single expression is five times as fast as a search for each name's bytes.
 */
export const membersNamed = (...names: ReadonlyArray<string>): RegExp =>
  names.length === 0 ? /(?!)/ : new RegExp(names.map((name) => `${name}"(?!: ?null)`).join("|"))

/** Matches JSON in latin1 with a reason under this name, so that the data which ends an answer is read; may also match other JSON. */
export const reasonNamed = (name: string): RegExp => new RegExp(`${name}"(?!: ?(?:null|""))`)

/** Matches what any of these matches. */
export const anyOf = (...marks: ReadonlyArray<RegExp>): RegExp =>
  new RegExp(marks.map(({ source }) => source).join("|"))

/** The data, not JSON, that ends the streams of OpenAI. */
const done = Buffer.from("[DONE]")

/** Whether stream data is `[DONE]`, which may be in quotes. */
export const isDone = (data: Uint8Array): boolean =>
  data.length <= done.length + 2 && Buffer.from(data.buffer, data.byteOffset, data.length).includes(done)

/** The kind of content: plain text, or anything else, such as reasoning, a tool call or a picture. */
export type Content = "text" | "other"

/** A part of one choice. */
export interface ChoicePart {
  readonly index: number
  /** Whether it contains the reason why the choice ends. */
  readonly isLast: boolean
}

/** Reads the parts of choices in a list. `reason` is the member with the reason why a choice ends. */
export const choiceParts = (list: unknown, reason: string): ReadonlyArray<ChoicePart> =>
  Json.list(list).map((item, position) => {
    const choice = Json.fields(item)
    const index = Json.count(choice["index"]) ?? position
    return { index, isLast: FinishReasons.reasonIn(choice[reason]) !== undefined }
  })

export interface AnswerGrammar {
  /**
   * What `[DONE]` means in a stream. It ends the stream, whatever precedes; or it ends nothing, as servers add it to dialects that end
   * otherwise: then clients get it (`passed`), or do not because they would fail (`dropped`).
   */
  readonly done: "ends" | "passed" | "dropped"
  /** The frame without which clients fail, after the data with the reason why the answer ends. Added if the server leaves it out. */
  readonly closing?: { readonly isIn: (data: Json.Fields) => boolean; readonly frame: Buffer }
  /** From `membersNamed`. Stream data that does not match is passed on unread. */
  readonly marks: RegExp
  /** The paths at which the model's name may be. */
  readonly modelPaths: ReadonlyArray<ReadonlyArray<string>>
  /** The paths at which the answer's id may be, if the gateway replaces it. Stream data with an id matches `marks`. */
  readonly idPaths?: ReadonlyArray<ReadonlyArray<string>>
  /** The member whose text only the provider's account understands, if answers can have one. */
  readonly sealedMember?: string
  /** Reads stream data, or a whole answer. `before` is the usage reported until then. */
  readonly read: (data: Json.Fields, before: Usage | undefined) => Reading
  /** Encodes usage that the provider has not reported, for answers that should report it. */
  readonly toUsage?: (usage: Usage) => object
  /**
   * Whether stream data contains the reason why the answer, or one of its choices, ends. Only data that matches `marks` and the last
   * pieces are checked.
   */
  readonly isLast: (data: Json.Fields) => boolean
  /** The choices of which stream data has a part. Absent if answers have only one. */
  readonly choicesIn?: (data: Json.Fields) => ReadonlyArray<ChoicePart>
  /**
   * The content of stream data; `undefined` if it has none, such as data that only announces an answer. The reason why plain text ends
   * counts as text. Absent if all data has content.
   */
  readonly contentOf?: (data: Json.Fields) => Content | undefined
  /** Matches stream data in latin1 that certainly has content. Without it, stream data is read until some has content. */
  readonly textMark?: RegExp
  /**
   * Where an answer's new text is, if other parts of the answer repeat text or the request. Stream data with new text matches `data` in
   * latin1, and the text of a whole answer is in `member`. Absent if all text is new.
   */
  readonly newText?: { readonly data: RegExp; readonly member: string }
  /** Matches damaged stream data that was certainly a piece of plain text. Without it, damaged data ends the stream. */
  readonly damagedText?: RegExp
}

/** The part of a whole answer that contains its text. */
export const textIn = ({ newText }: AnswerGrammar, answer: unknown): unknown =>
  newText === undefined ? answer : { [newText.member]: Json.fields(answer)[newText.member] }

/** The combined content of several parts. */
export const contentOfAll = (parts: ReadonlyArray<Content | undefined>): Content | undefined =>
  parts.includes("other") ? "other" : parts.find((part) => part !== undefined)

/** Maximum size of damaged data that may be skipped, in bytes. */
const maxDamagedBytes = 64 * 1024

/**
 * Watches a stream's data until its first content, and around damaged data. Damaged data may be skipped only if it was a piece of plain
 * text between two others: a gap in a tool's arguments would change what the client does.
 */
export class ContentWatch {
  readonly #grammar: AnswerGrammar
  hasContent = false
  /** Whether damaged data was skipped and no text has followed yet. */
  #isAfterGap = false

  constructor(grammar: AnswerGrammar) {
    this.#grammar = grammar
  }

  /** Whether `see` must be called for the next data. */
  get isActive(): boolean {
    return !this.hasContent || this.#isAfterGap
  }

  get isAfterGap(): boolean {
    return this.#isAfterGap
  }

  /** Looks for content in frames, in latin1, that need not be parsed: parsing would cost a hundredth of a short answer's time. */
  look(frames: string): void {
    const { textMark } = this.#grammar
    const at = textMark === undefined ? -1 : frames.search(textMark)
    if (at !== -1 && frames.includes("\n\n", at)) this.hasContent = true
  }

  /** Looks at data, and returns whether the stream is intact. */
  see(data: Json.Fields): boolean {
    const { contentOf } = this.#grammar
    const content = contentOf === undefined ? "other" : contentOf(data)
    if (content === undefined) return true
    const wasAfterGap = this.#isAfterGap
    this.hasContent = true
    this.#isAfterGap = false
    return content === "text" || !wasAfterGap
  }

  /** Skips damaged data if that is safe. `before` is the data before it, the latest last. Returns whether it was skipped. */
  skip(damaged: Uint8Array, before: ReadonlyArray<Json.Fields | undefined>): boolean {
    const { contentOf, damagedText } = this.#grammar
    if (contentOf === undefined || damagedText === undefined) return false
    if (this.#isAfterGap || damaged.length > maxDamagedBytes || !damagedText.test(Buffer.from(damaged).toString())) {
      return false
    }
    const last = before.map((data) => data && contentOf(data)).findLast((content) => content !== undefined)
    this.#isAfterGap = last === "text"
    return this.#isAfterGap
  }
}
