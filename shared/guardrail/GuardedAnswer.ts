/**
 * Holds an answer back until the guardrail has allowed it: a stream window by window, every other answer as a whole. No byte of a
 * window, and no byte after it, leaves before the window is allowed.
 *
 * The provider writes. `Guardrail.ts` takes one window after another, has it checked and releases it.
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
  /** Whether the window contains something other than text, which cannot be checked. */
  readonly isUnreadable: boolean
  readonly pieces: ReadonlyArray<Uint8Array>
}

/** Maximum number of bytes of a stream that are held; beyond that the provider is paused. */
const maxHeldBytes = 256 * 1024

/** Maximum number of bytes of any other answer that are held; a larger one cannot be checked. */
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
  /** The size of all held pieces and windows. */
  #heldBytes = 0
  #windows = 0
  /** Whether the rest passes unchecked, because it cannot be checked but may pass. */
  #isFree = false
  /** Whether the answer is too large to be held, or not text. */
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
      this.#fillIfStuck()
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

  /** Passes on an allowed window, and returns once the client accepts more. */
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
          this.#fillIfStuck()
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
    // an event without text between two windows, such as a ping, needs no check
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

  /** Lets everything that is held, and the rest of the answer, pass unchecked. */
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

  /** Makes the pieces so far a window. */
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

  /** Makes a window of events that have little text, and so fill no window by themselves, once they are all that is held. */
  #fillIfStuck(): void {
    if (!this.#mayContinue && this.#unreleased === 0) this.#fill()
  }

  #resumeWriter(): void {
    if (!this.#mayContinue) return
    const onDrain = this.#onDrain
    this.#onDrain = undefined
    onDrain?.()
  }
}
