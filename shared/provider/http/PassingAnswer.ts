/** An answer that reaches the client as the provider sent it, but for the model's alias. */
import type { JobError } from "../../contract/JobError.ts"
import { ProviderFailed } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Json from "../Json.ts"
import * as JsonText from "../JsonText.ts"
import type { Call } from "../Protocol.ts"
import type { Head } from "../Sink.ts"
import type { AnswerGrammar } from "./AnswerGrammar.ts"
import type { AnswerReader, Read } from "./AnswerReader.ts"
import { PassingStream, rename } from "./PassingStream.ts"
import * as ProviderError from "./ProviderError.ts"

export interface PassingAnswerOptions {
  readonly call: Call
  readonly grammar: AnswerGrammar
  readonly showUsage: boolean
  /** What no error may tell. */
  readonly secrets: ReadonlyArray<string>
}

/** JSON up to this size is held back until it is whole, so that a broken answer can still be tried elsewhere. */
const holdBackBytes = 1024 * 1024

export class PassingAnswer implements AnswerReader {
  readonly isPassable = true
  readonly #options: PassingAnswerOptions
  readonly #stream: PassingStream
  #usage: Usage | undefined
  #whole: Json.Fields | undefined

  constructor(options: PassingAnswerOptions) {
    const { grammar, showUsage } = options
    this.#options = options
    this.#stream = new PassingStream({ grammar, showUsage, alias: this.#alias })
  }

  get #alias(): string | undefined {
    const { call } = this.#options
    return call.endpoint.model === call.model ? undefined : call.model
  }

  head(status: number, contentType: string): Head {
    return { status, contentType, headers: {} }
  }

  /** Sound and pictures are worth nothing more when they are whole. */
  holdBytes(contentType: string): number {
    const { responseTypes } = this.#options.call.operation
    return responseTypes !== undefined && !contentType.includes("json") ? 0 : holdBackBytes
  }

  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    return this.#stream.push(chunk)
  }

  failure(): JobError | undefined {
    return this.#stream.failure === undefined ? undefined : this.#failed(this.#stream.failure)
  }

  end(): Read {
    const last = this.#stream.end()
    if (last === "error") return this.#failed("error")
    if (!this.#stream.isComplete) return this.#failed("cut")
    this.#usage = this.#stream.usage
    return last === undefined ? [] : [last]
  }

  whole(body: Uint8Array): Read {
    const { grammar } = this.#options
    this.#whole = JsonText.parsed(body)
    if (this.#whole === undefined) return this.#failed("malformed")
    // some providers say 200 and mean it not
    const { isError, usage } = grammar.read(this.#whole, undefined)
    if (isError === true) return this.#reported(body)
    this.#usage = usage
    const renamed = this.#alias === undefined ? undefined : rename(body, grammar, this.#alias)
    return [renamed ?? body]
  }

  usage(): Usage | undefined {
    return this.#usage
  }

  ends(): ReadonlyArray<unknown> {
    return this.#whole === undefined ? this.#stream.ends : [this.#whole]
  }

  #failed(reason: "cut" | "malformed" | "error"): JobError {
    const { errorData } = this.#stream
    return reason === "error" && errorData !== undefined
      ? this.#reported(errorData)
      : new ProviderFailed({ provider: this.#options.call.endpoint.name, reason, status: null, retryAfterMs: null })
  }

  #reported(data: Uint8Array): JobError {
    const { call, secrets } = this.#options
    return ProviderError.inAnswer(call.endpoint.name, Json.parse(Buffer.from(data).toString()), secrets)
  }
}
