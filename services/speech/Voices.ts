/** What each voice of the API is in terms of espeak-ng: a variant of its speaker, a pitch, an accent. */
import type { Voice } from "../../shared/contract/operations/AudioSpeech.ts"

export interface EspeakVoice {
  /** One of espeak-ng's voice variants, which change the formants and the source of the sound. */
  readonly variant: string
  /** 0 to 99; 50 is the variant's own. */
  readonly pitch: number
  /** The accent in which it speaks English; espeak-ng's `en` is the British one. */
  readonly english: "en-us" | "en"
}

/** Chosen so that every two differ in pitch, in timbre, or in both. */
export const espeakVoices: Record<Voice, EspeakVoice> = {
  // between a man's and a woman's, about 140 Hz
  alloy: { variant: "f4", pitch: 25, english: "en-us" },
  // a man, about 105 Hz
  echo: { variant: "m3", pitch: 50, english: "en-us" },
  // a man with a British accent, about 115 Hz
  fable: { variant: "m7", pitch: 60, english: "en" },
  // a deep and dark man, about 75 Hz
  onyx: { variant: "m8", pitch: 35, english: "en-us" },
  // a bright woman, about 225 Hz
  nova: { variant: "f3", pitch: 60, english: "en-us" },
  // a soft woman, about 180 Hz
  shimmer: { variant: "steph", pitch: 50, english: "en-us" }
}
