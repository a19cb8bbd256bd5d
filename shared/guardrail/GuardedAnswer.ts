/**
 * Holds an answer back until its guardrail has allowed it: streams by windows of text, every other answer as a whole. So no byte
 * of a window leaves before the window is allowed, nor any byte after it.
 *
 * The provider writes, and `Guardrail.ts` takes one window after another and releases it.
 */
import { Effect } from "effect"
import { dataOf, SseFrames } from "../bounds/SseFrames.ts"
import type { Guardrail } from "../catalogue/Guardrail.ts"
import type { Dialect } from "../contract/Operation.ts"
import * as Json from "../provider/json/Json.ts"
import type { Answer } from "../worker/Preparation.ts"
import { AnswerText } from "./AnswerText.ts"

type Head = Parameters<Answer["start"]>[0]

/** A part of the answer that waits for its verdict. */
export interface Window {
  readonly number: number
  readonly isLast: boolean
  readonly text: string
  /** It has something that is no text, which cannot be checked. */
  readonly isUnreadable: boolean
  readonly pieces: ReadonlyArray<Uint8Array>
}

/** The most bytes of a stream to hold beside the window that is being checked; then the provider pauses. */
const maxHeldBytes = 256 * 1024

/** The most bytes of an answer that is no stream. */
const maxWholeBytes = 32 * 1024 * 1024

const isJson = /^application\/(?:[\w.-]+\+)?json\b/i
const isText = /^(?:text\/|application\/x-subrip)/i

export class GuardedAnswer implements Answer {
  readonly #answer: Answer
  readonly #text: AnswerText
  readonly #characters: number
  #head: Head | undefined
  /** `undefined` unless the answer is a stream of events. */
  #frames: SseFrames | undefined
  /** The pieces of the window that is not full yet. */
  #pieces: Array<Uint8Array> = []
  /** The full windows that are not taken yet, and how many are not released. */
  #full: Array<Window> = []
  #unreleased = 0
  /** The bytes of all of these. */
  #heldBytes = 0
  #windows = 0
  /** The rest passes unchecked: it cannot be checked, and may pass. */
  #isFree = false
  /** It is too large to be held, or of a type that is no text. */
  #isUnreadable = false
  #onWindow: ((window: Window) => void) | undefined
  #onDrain: (() => void) | undefined

  constructor(answer: Answer, dialect: Dialect, { characters, overlap }: Guardrail["window"]) {
    this.#answer = answer
    this.#characters = characters
    this.#text = new AnswerText(dialect, overlap)
  }

  get hasStarted(): boolean {
    return this.#head !== undefined
  }

  start(head: Head): void {
    this.#head = head
    if (head.contentType.startsWith("text/event-stream")) this.#frames = new SseFrames()
    else if (!isJson.test(head.contentType) && !isText.test(head.contentType)) this.#giveUp()
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isFree) return this.#answer.write(bytes)
    if (this.#frames === undefined) {
      this.#hold(bytes)
      if (this.#heldBytes > maxWholeBytes) this.#giveUp()
    } else {
      for (const frame of this.#frames.push(bytes)) this.#addFrame(frame)
      // events without text
      if (!this.#mayContinue && this.#unreleased === 0) this.#fill()
    }
    return this.#mayContinue
  }

  onDrain(resume: () => void): void {
    if (this.#isFree) this.#answer.onDrain(resume)
    else if (this.#mayContinue) resume()
    else this.#onDrain = resume
  }

  /** The provider has written everything. */
  end(): void {
    if (this.#frames !== undefined) { if (this.#frames.restBytes > 0) this.#addFrame(this.#frames.rest) }
    else if (!this.#isUnreadable) this.#addWhole()
    this.#fill(true)
  }

  /** Waits for the next window that is to be checked. */
  readonly next: Effect.Effect<Window> = Effect.callback<Window>((resume) => {
    const window = this.#full.shift()
    if (window === undefined) this.#onWindow = (window) => resume(Effect.succeed(window))
    else resume(Effect.succeed(window))
    return Effect.sync(() => {
      this.#onWindow = undefined
    })
  })

  /** Passes an allowed window on, as fast as the client takes it. */
  readonly release = (window: Window): Effect.Effect<void> =>
    Effect.suspend(() => {
      let mayContinue = true
      for (const piece of window.pieces) {
        this.#heldBytes -= piece.length
        mayContinue = this.#pass(piece)
      }
      if (window.isLast) this.#start()
      if (this.#isUnreadable) this.#setFree()
      const drained = mayContinue ?
        Effect.void :
        Effect.callback<void>((resume) => this.#answer.onDrain(() => resume(Effect.void)))
      return Effect.andThen(
        drained,
        Effect.sync(() => {
          this.#unreleased--
          this.#resumeWriter()
        })
      )
    })

  #addFrame(frame: Uint8Array): void {
    const data = dataOf(frame)
    if (data !== undefined) {
      const text = Json.decodeText(data)
      const json = Json.parse(text)
      if (json !== undefined) this.#text.add(json)
      else if (text.trim() !== "[DONE]") this.#text.addText(text)
    }
    const isBetween = this.#windows > 0 && this.#unreleased === 0 && this.#pieces.length === 0
    // such as a ping
    if (isBetween && this.#text.pending === 0 && !this.#text.isUnreadable) return void this.#pass(frame)
    this.#hold(frame)
    if (this.#text.pending >= this.#characters) this.#fill()
  }

  #addWhole(): void {
    const text = Json.decodeText(Buffer.concat(this.#pieces))
    const json = isJson.test(this.#head?.contentType ?? "") ? Json.parse(text) : undefined
    if (json === undefined) this.#text.addText(text)
    else this.#text.add(json)
  }

  /** The answer cannot be checked as a whole. */
  #giveUp(): void {
    if (this.#isUnreadable) return
    this.#isUnreadable = true
    this.#fill()
  }

  /** Nothing that is held follows, and nothing waits for a verdict. */
  #setFree(): void {
    this.#isFree = true
    for (const piece of this.#pieces.splice(0)) {
      this.#heldBytes -= piece.length
      this.#pass(piece)
    }
  }

  #hold(bytes: Uint8Array): void {
    this.#pieces.push(bytes)
    this.#heldBytes += bytes.length
  }

  #pass(bytes: Uint8Array): boolean {
    this.#start()
    return this.#answer.write(bytes)
  }

  #start(): void {
    if (this.#head !== undefined && !this.#answer.hasStarted) this.#answer.start(this.#head)
  }

  get #mayContinue(): boolean {
    return this.#heldBytes <= (this.#frames === undefined ? maxWholeBytes : maxHeldBytes)
  }

  /** The pieces so far are a window. */
  #fill(isLast = false): void {
    const isUnreadable = this.#text.isUnreadable || (this.#isUnreadable && !this.#isFree)
    const window = { number: this.#windows++, isLast, isUnreadable, text: this.#text.take(), pieces: this.#pieces }
    this.#pieces = []
    this.#unreleased++
    const onWindow = this.#onWindow
    this.#onWindow = undefined
    if (onWindow === undefined) this.#full.push(window)
    else onWindow(window)
  }

  #resumeWriter(): void {
    if (!this.#mayContinue) return
    const onDrain = this.#onDrain
    this.#onDrain = undefined
    onDrain?.()
  }
}
