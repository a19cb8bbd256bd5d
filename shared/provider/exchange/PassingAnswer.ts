/**
 * Passes on an answer as the provider sent it. Changes only the model's name, a response's id, marks of sealed reasoning, vectors in
 * base64 and missing usage.
 */
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import { isReported, type Usage } from "../../contract/Usage.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as EstimatedUsage from "../call/EstimatedUsage.ts"
import * as Json from "../json/Json.ts"
import { JsonOutline } from "../json/JsonOutline.ts"
import * as JsonText from "../json/JsonText.ts"
import type { Call } from "../call/Protocol.ts"
import * as TranslationWarnings from "../call/TranslationWarnings.ts"
import type { Head } from "../transport/Sink.ts"
import { type AnswerGrammar, textIn } from "./AnswerGrammar.ts"
import type { AnswerReader, Read } from "./AnswerReader.ts"
import { PassingStream, rename } from "./PassingStream.ts"
import * as ProviderError from "./ProviderError.ts"

export interface PassingAnswerOptions {
  readonly call: Call
  readonly grammar: AnswerGrammar
  readonly showUsage?: boolean | undefined
  readonly hasSeveralChoices?: boolean | undefined
  /** The usage if the answer reports none. */
  readonly usage?: Usage | undefined
  /** Replaces the answer's id. */
  readonly id?: string | undefined
  /** Warnings about parts of the request that were left out. */
  readonly warnings?: ReadonlyArray<string> | undefined
  /** The reader of an answer in the other form than the request's; see `AnswerReader`. Absent: such an answer fails. */
  readonly converted?: (() => AnswerReader | undefined) | undefined
  /** Whether the request asks for a stream. Absent: the answer may have either form. */
  readonly streams?: boolean | undefined
  /** A further edit of the pieces that are passed on. */
  readonly rewrite?: ((piece: Uint8Array) => Uint8Array) | undefined
  /** Texts that no error may reveal. */
  readonly secrets: ReadonlyArray<string>
}

/** JSON up to this size is held until it is complete, so that another provider can be tried if it is broken. */
const holdBackBytes = 1024 * 1024

/** The string at the end of a text, which is the value of a member. */
const lastString = /"(?:[^"\\]|\\.)*"(?=\s*$)/

export class PassingAnswer implements AnswerReader {
  readonly #options: PassingAnswerOptions
  readonly #stream: PassingStream
  #isJson = false
  #outline: JsonOutline | undefined
  /** The bytes so far of a member that may have to change. */
  #open: Uint8Array = new Uint8Array(0)
  #usage: Usage | undefined
  /** Whether a whole answer has its usage only where clients do not look for it. */
  #isElsewhere = false
  #whole: Json.Fields | undefined
  /** The text of a whole answer without usage. */
  #text: Uint8Array | undefined
  /** Cache of `#changes`, which are the same for every piece and needed only by answers in pieces. */
  #knownChanges: ReadonlyMap<string | undefined, string> | undefined

  constructor(options: PassingAnswerOptions) {
    const { call: { endpoint }, grammar, hasSeveralChoices, id, showUsage = false, usage } = options
    this.#options = options
    this.#usage = usage
    const onSkip = () => Metrics.update(Metrics.skippedChunks(endpoint.name), 1)
    this.#stream = new PassingStream({ grammar, showUsage, hasSeveralChoices, alias: this.#alias, id, onSkip })
  }

  get #alias(): string | undefined {
    const { call } = this.#options
    return call.endpoint.model === call.answersAs ? undefined : call.answersAs
  }

  head(status: number, contentType: string): Head {
    return { status, contentType, headers: TranslationWarnings.toHeaders(this.#options.warnings ?? []) }
  }

  get inForm(): AnswerReader["inForm"] {
    const { call: { operation }, converted, streams } = this.#options
    if (streams === undefined || operation.responseTypes !== undefined) return undefined
    return (isStream) => isStream === streams ? this : converted?.()
  }

  /** Answers with the operation's own types are passed on immediately. JSON and other text, which may be an error, are held. */
  holdBytes(contentType: string): number {
    const { responseTypes } = this.#options.call.operation
    const isOwn = responseTypes?.some((type) => contentType.startsWith(type)) === true
    this.#isJson = responseTypes === undefined || (!isOwn && /json|^text\//i.test(contentType))
    return this.#isJson ? holdBackBytes : 0
  }

  pass(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    if (!this.#isJson) return [chunk]
    const outline = this.#outline ??= new JsonOutline()
    outline.push(chunk)
    return this.#rewritten(this.#changes.size === 0 ? [chunk] : this.#renamed(outline, chunk))
  }

  #rewritten(pieces: ReadonlyArray<Uint8Array>): ReadonlyArray<Uint8Array> {
    const { rewrite } = this.#options
    return rewrite === undefined ? pieces : pieces.map(rewrite).filter(({ length }) => length > 0)
  }

  endPassing(): JobError | undefined {
    return this.#outline === undefined ? undefined : this.#read(this.#outline.fields)
  }

  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    return this.#rewritten(this.#stream.push(chunk))
  }

  failure(): JobError | undefined {
    return this.#stream.failure === undefined ? undefined : this.#failed(this.#stream.failure)
  }

  hasContent(): boolean {
    return this.#stream.hasContent
  }

  end(): Read {
    const last = this.#stream.end()
    if (last === "error") return this.#failed("error")
    if (!this.#stream.isComplete) return this.#failed("cut")
    const reported = this.#stream.usage
    // what the answer does not report, such as the characters of speech, stays
    if (reported !== undefined || this.#usage === undefined) this.#usage = reported && { ...this.#usage, ...reported }
    const pieces = this.#rewritten(last === undefined ? [] : [last])
    const { grammar: { toUsage }, showUsage } = this.#options
    if (showUsage !== true || toUsage === undefined || (isReported(this.#usage) && this.#stream.hasShownUsage)) {
      return [...pieces, ...this.#stream.closing]
    }
    const endWith = (usage: Usage) => [...pieces, ...this.#stream.endWith(toUsage(usage))]
    return isReported(this.#usage) ? endWith(this.#usage) : endWith
  }

  whole(body: Uint8Array): Read {
    const failure = this.#read(JsonText.parsed(body))
    if (failure !== undefined) return failure
    const { grammar, id, rewrite } = this.#options
    const renamed = rename(body, grammar, { alias: this.#alias, id })
    const whole = rewrite === undefined ? renamed ?? body : rewrite(renamed ?? body)
    const { toUsage } = grammar
    const withUsage = (usage: Usage) =>
      toUsage === undefined
        ? [whole]
        : [JsonText.setMembers(whole, JsonText.members(whole) ?? [], new Map([["usage", toUsage(usage)]]))]
    if (isReported(this.#usage)) return this.#isElsewhere ? withUsage(this.#usage) : [whole]
    this.#text = whole
    return toUsage === undefined ? [whole] : withUsage
  }

  usage(): Usage | undefined {
    return this.#usage ?? this.#stream.usage
  }

  textBytes(): number {
    // nearly all of an answer that is too large to hold is text
    if (this.#outline !== undefined) return this.#outline.bytes
    return this.#text === undefined
      ? this.#stream.textBytes
      : EstimatedUsage.textBytes(textIn(this.#options.grammar, Json.parse(Json.decodeText(this.#text))))
  }

  ends(): ReadonlyArray<unknown> {
    return this.#whole === undefined ? this.#stream.ends : [this.#whole]
  }

  /** The new values of the members that change in an answer that is passed on in pieces: the model's name and the id. */
  get #changes(): ReadonlyMap<string | undefined, string> {
    if (this.#knownChanges !== undefined) return this.#knownChanges
    const { grammar: { idPaths = [], modelPaths }, id } = this.#options
    const namesOf = (paths: typeof modelPaths, value: string | undefined) =>
      value === undefined ? [] : paths.filter(({ length }) => length === 1).map(([name]) => [name, value] as const)
    return this.#knownChanges = new Map([...namesOf(modelPaths, this.#alias), ...namesOf(idPaths, id)])
  }

  /** The bytes that can be passed on now, with the changes. */
  #renamed(outline: JsonOutline, chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    const changes = this.#changes
    const bytes = Buffer.concat([this.#open, chunk])
    const first = outline.bytes - bytes.length
    const pieces: Array<Uint8Array> = []
    let copied = 0
    for (const { end, name, start } of outline.takeEnded()) {
      const value = changes.get(name)
      if (value === undefined) continue
      const member = bytes.toString("utf8", start - first, end - first)
      pieces.push(
        bytes.subarray(copied, start - first),
        Buffer.from(member.replace(lastString, () => JSON.stringify(value)))
      )
      copied = end - first
    }
    const until = bytes.length - outline.openBytes
    this.#open = bytes.subarray(until)
    return [...pieces, bytes.subarray(copied, until)].filter(({ length }) => length > 0)
  }

  /** Reads an answer that is not a stream. Returns the error if the answer is invalid. */
  #read(answer: Json.Fields | undefined): JobError | undefined {
    this.#whole = answer
    if (answer === undefined) return this.#failed("malformed")
    // some servers return errors with status 200
    const { isElsewhere = false, isError, usage } = this.#options.grammar.read(answer, undefined)
    if (isError === true) return this.#reported(answer)
    this.#usage = usage ?? this.#usage
    this.#isElsewhere = isElsewhere
    return undefined
  }

  #failed(reason: "cut" | "malformed" | "error"): JobError {
    const { errorData } = this.#stream
    return reason === "error" && errorData !== undefined
      ? this.#reported(Json.parse(Buffer.from(errorData).toString()))
      : new ProviderFailed({ provider: this.#options.call.endpoint.name, reason })
  }

  #reported(answer: unknown): JobError {
    const { call, secrets } = this.#options
    return ProviderError.inAnswer(call.endpoint.name, answer, secrets)
  }
}
