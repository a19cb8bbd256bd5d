/**
 * The speech synthesiser espeak-ng, as this service uses it: always in a process of its own, for it is licensed under the
 * GPL and the gateway is not. It is spoken to in text and answers in samples, nothing else.
 */
import { Context, type Effect, Schema } from "effect"

/** Samples in a second of what it makes. */
export const espeakRate = 22_050

/** One utterance and how it is said. */
export interface Saying {
  readonly text: string
  /** A language, by espeak-ng's names. */
  readonly language: string
  /** A voice variant, by espeak-ng's names. */
  readonly variant: string
  /** 0 to 99. */
  readonly pitch: number
  /** 80 to 450: espeak-ng's own range. */
  readonly wordsPerMinute: number
}

/** The synthesiser could not be run, died, or did not answer in time. */
export class EspeakFailed extends Schema.TaggedError<EspeakFailed>()("EspeakFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `espeak-ng ${this.detail}`
  }
}

/** How long one utterance may take to make, on however slow a machine. */
export const patience = "60 seconds"

export class Espeak extends Context.Service<Espeak, {
  /** The whole sound of an utterance: mono, at `espeakRate`. Not more than a few utterances are made at once; others wait. */
  readonly say: (saying: Saying) => Effect.Effect<Int16Array, EspeakFailed>
}>()("services/speech/Espeak") {}
