/**
 * Collects what a model wrote from the JSON of an answer, or of the events of a stream, in any dialect.
 *
 * Every text counts that is not known to be something else, so that fields of future models are checked too. The texts of a stream are
 * joined by their place, such as a choice or a content block, so that a word that is split over two events is one word.
 */
import { Predicate } from "effect"
import { createHash, type Hash } from "node:crypto"
import { maxDepth } from "../bounds/JsonBounds.ts"
import type { Dialect } from "../contract/Operation.ts"
import * as Json from "../provider/json/Json.ts"

/** Members whose text is not the model's: the API defines it, or the provider made it up as a name or id. */
const labels: ReadonlySet<string> = new Set([
  ...[
    "type",
    "object",
    "role",
    "status",
    "phase",
    "event",
    "native_finish_reason",
    "service_tier",
    "system_fingerprint"
  ],
  ...["finish_reason", "finishReason", "stop_reason", "stop_sequence", "blockReason", "obfuscation"],
  ...["id", "call_id", "item_id", "tool_use_id", "response_id", "responseId", "previous_response_id", "request_id"],
  ...["model", "modelVersion", "provider", "mime_type", "mimeType", "media_type", "modality"]
])

/** Members whose text only the provider can read. */
const sealed: ReadonlySet<string> = new Set([
  ...["encrypted_content", "signature", "thoughtSignature", "thought_signature"]
])

/** Members whose value the model writes as JSON. */
const jsonMembers: ReadonlySet<string> = new Set(["args", "arguments", "input"])

/** Members that always hold text, even if it looks like media. */
const textMembers: ReadonlySet<string> = new Set([
  ...["content", "text", "refusal", "arguments", "partial_json", "delta", "input", "code", "transcript"],
  ...["reasoning", "reasoning_content", "thinking", "output_text"]
])

/** Members of a response in the responses format that repeat the request. */
const echoes: ReadonlySet<string> = new Set([
  ...["input", "instructions", "metadata", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning"],
  ...["safety_identifier", "text", "tool_choice", "tools", "truncation", "user"]
])

/** Media in base64: long, because a shorter text could be a word. */
const base64 = /^[A-Za-z0-9+/_-]{128,}={0,2}$/
const dataUrl = /^data:[^,]{0,200};base64,/

/** Events whose `delta` is audio or a picture. */
const mediaEvent = /audio\.delta$|partial_image$/

/** Events that repeat the content of earlier ones. */
const repetition = /\.(?:done|completed|incomplete|failed)$/

const positions = ["index", "output_index", "content_index", "summary_index"]

/** The text of one place of the answer. */
interface Channel {
  /** The end of the text that was taken already. */
  context: string
  pending: Array<string>
  /** The hash of the whole text; only in the responses format, which repeats texts. */
  readonly hash: Hash | undefined
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64")

export class AnswerText {
  readonly #repeats: boolean
  readonly #overlap: number
  readonly #channels = new Map<string, Channel>()
  /** The channels with text that was not taken yet. */
  readonly #open = new Set<Channel>()
  /** The channels with text that is not in `#known` yet. */
  readonly #dirty = new Set<Channel>()
  /** The hashes of the texts of all channels, as of the latest repetition. */
  readonly #known = new Set<string>()
  #isRepetition = false
  #isMedia = false
  #pending = 0
  #isUnreadable = false

  /** `overlap`: how many characters of each text are repeated with its next part. */
  constructor(dialect: Dialect, overlap: number) {
    this.#repeats = dialect === "responses"
    this.#overlap = overlap
  }

  /** The number of characters that were not taken yet. */
  get pending(): number {
    return this.#pending
  }

  /** Whether something other than text, such as a picture, was added since the last `take`. */
  get isUnreadable(): boolean {
    return this.#isUnreadable
  }

  /** Adds an answer, or an event of a stream. */
  add(json: unknown): void {
    const root = Json.fields(json)
    const type = Json.string(root["type"]) ?? ""
    this.#isMedia = mediaEvent.test(type)
    this.#isRepetition = this.#repeats && repetition.test(type)
    if (this.#isRepetition) this.#learn()
    const place = [type, ...positions.map((name) => root[name])].join(":")
    const isResponse = this.#repeats && root["object"] === "response"
    this.#addIn(json, "", place, maxDepth, isResponse)
  }

  /** Adds an answer or an event that is not JSON. */
  addText(text: string): void {
    this.#append("", text)
  }

  /** Takes the texts since the last `take`, each preceded by the end of its part that was taken before. */
  take(): string {
    const texts: Array<string> = []
    for (const channel of this.#open) {
      const text = channel.context + channel.pending.join("")
      texts.push(text)
      channel.context = endOf(text, this.#overlap)
      channel.pending = []
    }
    this.#open.clear()
    this.#pending = 0
    this.#isUnreadable = false
    return texts.join("\n")
  }

  #addIn(value: unknown, name: string, place: string, depth: number, isResponse = false): void {
    if (typeof value === "string") return this.#addString(value, name, place)
    if (!Predicate.isObjectOrArray(value)) return
    if (depth === 0) {
      this.#isUnreadable = true
      return
    }
    if (Array.isArray(value)) {
      for (const [at, item] of value.entries()) {
        this.#addIn(item, name, `${place}[${Json.count(Json.fields(item)["index"]) ?? at}]`, depth - 1)
      }
      return
    }
    const fields = Json.fields(value)
    if (jsonMembers.has(name)) {
      const text = JSON.stringify(fields)
      return text === "{}" ? undefined : this.#append(place, text)
    }
    if (/redacted|encrypted/.test(Json.string(fields["type"]) ?? "")) return
    for (const [member, inner] of Object.entries(fields)) {
      if (isResponse && echoes.has(member)) continue
      this.#addIn(inner, member, `${place}.${member}`, depth - 1, this.#repeats && member === "response")
    }
  }

  #addString(text: string, name: string, place: string): void {
    if (text === "" || labels.has(name) || sealed.has(name)) return
    const isText = textMembers.has(name) && !(this.#isMedia && name === "delta")
    if (dataUrl.test(text) || (!isText && (this.#isMedia || base64.test(text)))) this.#isUnreadable = true
    else this.#append(place, text)
  }

  #append(place: string, text: string): void {
    if (this.#isRepetition) {
      const digest = digestOf(text)
      if (this.#known.has(digest)) return
      this.#known.add(digest)
    }
    let channel = this.#channels.get(place)
    if (channel === undefined) {
      channel = { context: "", pending: [], hash: this.#repeats ? createHash("sha256") : undefined }
      this.#channels.set(place, channel)
    }
    channel.pending.push(text)
    this.#open.add(channel)
    this.#pending += text.length
    if (channel.hash === undefined) return
    channel.hash.update(text)
    this.#dirty.add(channel)
  }

  /** Remembers the texts so far, to recognise repetitions. */
  #learn(): void {
    for (const { hash } of this.#dirty) if (hash !== undefined) this.#known.add(hash.copy().digest("base64"))
    this.#dirty.clear()
  }
}

/** The last characters of a text, without half of a surrogate pair. */
const endOf = (text: string, characters: number): string => {
  if (characters === 0) return ""
  const end = text.slice(-characters)
  return /^[\uDC00-\uDFFF]/.test(end) ? end.slice(1) : end
}
