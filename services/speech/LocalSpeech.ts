/**
 * The engine of `local-speech`: reads a text aloud, utterance by utterance, and encodes what has been said while the next
 * is still being made.
 */
import { Config, Context, Effect, Layer, Stream } from "effect"
import { availableParallelism } from "node:os"
import type { AudioFormat, Voice } from "../../shared/contract/operations/AudioSpeech.ts"
import { atLeast } from "../../shared/contract/Fields.ts"
import * as AudioEncoder from "./AudioEncoder.ts"
import { Espeak, type EspeakFailed, espeakRate, layer as espeakLayer } from "./Espeak.ts"
import { languageOf } from "./Languages.ts"
import { Resampler } from "./Samples.ts"
import { utterancesOf } from "./Utterances.ts"
import { espeakVoices } from "./Voices.ts"

export interface Speech {
  readonly text: string
  readonly voice: Voice
  readonly format: AudioFormat
  /** A multiple of the usual speed. Beyond `speeds`, espeak-ng speaks at the nearest that it can. */
  readonly speed: number
  /** Of what is written in Latin letters; other scripts say themselves what language they are. */
  readonly language: string
}

export class LocalSpeech extends Context.Service<LocalSpeech, {
  /** The encoded sound as it is made. It is never made faster than it is read. */
  readonly speak: (speech: Speech) => Stream.Stream<Uint8Array, EspeakFailed>
}>()("services/speech/LocalSpeech") {
  static readonly layerNoDeps = Layer.effect(
    LocalSpeech,
    Effect.map(Espeak, (espeak) =>
      LocalSpeech.of({
        speak: (speech) => AudioEncoder.encode(speech.format, Stream.suspend(() => sound(espeak, speech)))
      }))
  )

  static readonly layer = LocalSpeech.layerNoDeps.pipe(
    // `SPEECH_PROCESSES`: how many utterances are made at once
    Layer.provide(Layer.unwrap(Effect.map(
      Config.schema(atLeast(1), "SPEECH_PROCESSES").pipe(Config.withDefault(Math.min(4, availableParallelism()))),
      espeakLayer
    )))
  )
}

/** Samples that are worked on in one go, a twentieth of a second: little work, so that others get their turn. */
const sliceSamples = Math.round(espeakRate / 20)

const usualWordsPerMinute = 175

/** The slowest and the fastest speech that espeak-ng makes, as multiples of the usual speed. */
export const speeds = { slowest: 80 / usualWordsPerMinute, fastest: 450 / usualWordsPerMinute }

const sound = (espeak: Espeak["Service"], speech: Speech): Stream.Stream<Int16Array, EspeakFailed> => {
  const speed = Math.min(speeds.fastest, Math.max(speeds.slowest, speech.speed))
  const wordsPerMinute = Math.round(usualWordsPerMinute * speed)
  const { english, pitch, variant } = espeakVoices[speech.voice]
  const resampler = new Resampler(espeakRate, AudioEncoder.sampleRate)
  let made = 0

  const say = (text: string) => {
    const language = languageOf(text, speech.language)
    return espeak.say({ text, language: language === "en" ? english : language, variant, pitch, wordsPerMinute })
  }
  /** What is left in the filter, or a moment of silence if there was nothing to say. */
  const rest = Stream.suspend(() => {
    const last = resampler.finish()
    return Stream.make(last, new Int16Array(made + last.length > 0 ? 0 : AudioEncoder.sampleRate / 10))
  })

  return Stream.fromIterable(utterancesOf(speech.text)).pipe(
    Stream.mapEffect(say),
    // the next one is made while this one is encoded
    Stream.buffer({ capacity: 1 }),
    Stream.flatMap((samples) => Stream.fromIterable(slicesOf(samples))),
    Stream.mapEffect((slice) => Effect.map(Effect.yieldNow, () => resampler.push(slice))),
    Stream.concat(rest),
    Stream.filter((samples) => samples.length > 0),
    Stream.tap((samples) => Effect.sync(() => made += samples.length))
  )
}

function* slicesOf(samples: Int16Array): Generator<Int16Array> {
  for (let at = 0; at < samples.length; at += sliceSamples) yield samples.subarray(at, at + sliceSamples)
}
