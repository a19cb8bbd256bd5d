/** The engine of `local-speech`: reads a text aloud and encodes each utterance while the next one is made. */
import { Context, Effect, Layer, Stream } from "effect"
import type { AudioFormat, Voice } from "../../shared/contract/operations/audio/Speech.ts"
import * as AudioEncoder from "./AudioEncoder.ts"
import * as Espeak from "./Espeak.ts"
import { resample } from "./Samples.ts"
import { utterancesOf } from "./Utterances.ts"

export interface Speech {
  readonly text: string
  readonly voice: Voice
  readonly format: AudioFormat
  /** A multiple of the usual speed, limited to `speeds`. */
  readonly speed: number
  /** The language, by espeak-ng's names. */
  readonly language: string
}

export class LocalSpeech extends Context.Service<LocalSpeech, {
  /** The encoded sound as it is made, never faster than it is read. */
  readonly speak: (speech: Speech) => Stream.Stream<Uint8Array, Espeak.EspeakFailed>
}>()("services/speech/LocalSpeech") {
  static readonly layerNoDeps = Layer.effect(
    LocalSpeech,
    Effect.map(
      Espeak.Espeak,
      (espeak) => LocalSpeech.of({ speak: (speech) => AudioEncoder.encode(speech.format, speak(espeak, speech)) })
    )
  )

  static readonly layer = LocalSpeech.layerNoDeps.pipe(Layer.provide(Espeak.layer))
}

/**
 * A speaker variant of espeak-ng, its pitch, and its English accent, where `en` is British. Any two differ in pitch, in timbre,
 * or in both: between a man's and a woman's (about 140 Hz), three men (105, 115 and 75 Hz, the last one dark), a bright woman
 * (225 Hz) and a soft one (180 Hz).
 */
const voices: Readonly<Record<Voice, readonly [variant: string, pitch: number, english: "en-us" | "en"]>> = {
  alloy: ["f4", 25, "en-us"],
  echo: ["m3", 50, "en-us"],
  fable: ["m7", 60, "en"],
  onyx: ["m8", 35, "en-us"],
  nova: ["f3", 60, "en-us"],
  shimmer: ["steph", 50, "en-us"]
}

const usualWordsPerMinute = 175

/** The slowest and the fastest speech of espeak-ng, as multiples of the usual speed. */
export const speeds = { slowest: 80 / usualWordsPerMinute, fastest: 450 / usualWordsPerMinute }

/** Samples encoded between two pauses: a twentieth of a second of sound. */
const sliceSamples = AudioEncoder.sampleRate / 20

const speak = (espeak: Espeak.Espeak["Service"], speech: Speech): Stream.Stream<Int16Array, Espeak.EspeakFailed> => {
  const speed = Math.min(speeds.fastest, Math.max(speeds.slowest, speech.speed))
  const [variant, pitch, english] = voices[speech.voice]
  const language = speech.language === "en" ? english : speech.language
  const wordsPerMinute = Math.round(usualWordsPerMinute * speed)
  return Stream.fromIterable(utterancesOf(speech.text)).pipe(
    Stream.mapEffect((text) => espeak.say({ text, language, variant, pitch, wordsPerMinute })),
    // the next one is made while this one is encoded
    Stream.buffer({ capacity: 1 }),
    Stream.flatMap((samples) =>
      Stream.fromIterable(slicesOf(resample(samples, Espeak.sampleRate, AudioEncoder.sampleRate)))
    ),
    Stream.mapEffect((slice) => Effect.as(Effect.yieldNow, slice)),
    // a moment of silence if there is nothing to say
    Stream.orElseIfEmpty(() => Stream.make(new Int16Array(sliceSamples)))
  )
}

function* slicesOf(samples: Int16Array): Generator<Int16Array> {
  for (let at = 0; at < samples.length; at += sliceSamples) yield samples.subarray(at, at + sliceSamples)
}
