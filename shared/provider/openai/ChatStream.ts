/**
 * Reads a streamed chat completion as it passes: hands on every frame unchanged but for the model's alias, meters usage,
 * and knows whether the provider ended its answer properly.
 */
import { Option, Schema } from "effect"
import type { Usage } from "../../contract/Usage.ts"
import * as JsonText from "../JsonText.ts"
import { dataOf, maxFrameBytes, replaceData, SseFrames } from "../SseFrames.ts"
import { usageOf } from "./OpenAiUsage.ts"

export interface ChatStreamOptions {
  /** The client asked for usage itself, so the provider's usage frame is passed on. */
  readonly showUsage: boolean
  /** Puts this name in the place of the provider's model; `undefined` leaves frames as they are. */
  readonly alias: string | undefined
}

const done = Buffer.from("[DONE]")
const Finished = Schema.fromJsonString(Schema.Struct({
  choices: Schema.Array(Schema.Struct({ finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String)) }))
}))
const decodeFinished = Schema.decodeUnknownOption(Finished)

/** How many of the last frames are searched for a `finish_reason` where the provider sends no `[DONE]`. */
const remembered = 4

export class ChatStream {
  readonly #options: ChatStreamOptions
  readonly #frames = new SseFrames()
  #last: Array<Uint8Array> = []
  #done = false
  usage: Usage | undefined

  constructor(options: ChatStreamOptions) {
    this.#options = options
  }

  /** What of this chunk is for the client. `"malformed"` and `"error"` end the stream. */
  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> | "malformed" | "error" {
    const out: Array<Uint8Array> = []
    // looked for once in the chunk and not in each of its frames, unless one of them began in an earlier chunk
    const isOrdinary = this.#frames.restBytes === 0 && !holdsSpecial(chunk)
    for (const frame of this.#frames.push(chunk)) {
      const kept = this.#take(frame, isOrdinary)
      if (kept === "malformed" || kept === "error") return kept
      if (kept !== undefined) append(out, kept)
    }
    return this.#frames.restBytes > maxFrameBytes ? "malformed" : out
  }

  /**
   * The provider has ended its body. Returns the last frame where only the blank line after it is missing and it makes
   * the answer whole; a frame that was cut is dropped.
   */
  end(): Uint8Array | undefined | "error" {
    const { rest } = this.#frames
    const kept = rest.length === 0 ? undefined : this.#take(rest, false)
    if (kept === "error") return kept
    return kept === "malformed" || !this.isComplete ? undefined : kept
  }

  /** Whether what has passed is a whole answer. */
  get isComplete(): boolean {
    if (this.#done) return true
    return this.#last.some((data) =>
      Option.match(decodeFinished(Buffer.from(data).toString()), {
        onNone: () => false,
        onSome: ({ choices }) => choices.some((choice) => typeof choice.finish_reason === "string")
      })
    )
  }

  /** What of this frame is for the client. */
  #take(frame: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    const data = dataOf(frame)
    // a comment or an event without data
    if (data === undefined) return frame
    if (data.length > done.length + 2 || !Buffer.from(data).includes(done)) return this.#read(frame, data, isOrdinary)
    this.#done = true
    return frame
  }

  #read(frame: Uint8Array, data: Uint8Array, isOrdinary: boolean): Uint8Array | undefined | "malformed" | "error" {
    this.#last.push(data)
    if (this.#last.length > remembered) this.#last.shift()
    if (this.#options.alias === undefined && isObject(data) && (isOrdinary || !holdsSpecial(data))) {
      return frame
    }
    const members = JsonText.members(data)
    if (members === undefined) return "malformed"
    const error = JsonText.valueOf(data, members, "error")
    if (error !== undefined && error !== null) return "error"
    const usage = usageOf(JsonText.valueOf(data, members, "usage"))
    if (usage !== undefined) {
      this.usage = usage
      const choices = JsonText.valueOf(data, members, "choices")
      if (!this.#options.showUsage && Array.isArray(choices) && choices.length === 0) return undefined
    }
    const { alias } = this.#options
    if (alias === undefined || !members.some((member) => member.name === "model")) return frame
    const renamed = JsonText.setMembers(data, members, new Map([["model", alias]]))
    return replaceData(frame, data, renamed)
  }
}

const usageKey = Buffer.from("\"usage\"")
const errorKey = Buffer.from("\"error\"")

/** Whether bytes speak of usage or of an error, and so need a second look. */
const holdsSpecial = (data: Uint8Array): boolean => {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  return bytes.includes(usageKey) || bytes.includes(errorKey)
}

const isObject = (data: Uint8Array): boolean => data[0] === 0x7b && data[data.length - 1] === 0x7d

/** Adds a frame; one that lies right behind the last is joined to it without a copy. */
const append = (out: Array<Uint8Array>, frame: Uint8Array): void => {
  const last = out.at(-1)
  if (last !== undefined && last.buffer === frame.buffer && last.byteOffset + last.length === frame.byteOffset) {
    out[out.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + frame.length)
  } else out.push(frame)
}
