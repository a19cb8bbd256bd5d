/** POST /v1/audio/speech: the request for spoken text. The answer is the sound itself. */
import { Schema } from "effect"
import { between, ModelName, optional } from "../Fields.ts"
import type { Operation } from "../Operation.ts"

export const voices = ["alloy", "echo", "fable", "onyx", "nova", "shimmer"] as const
export type Voice = typeof voices[number]

export const audioFormats = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const
export type AudioFormat = typeof audioFormats[number]

export const mediaTypes: Record<AudioFormat, string> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm"
}

/** The most characters of one request. */
const maxCharacters = 4_096

/** Characters are Unicode code points: an emoji of one code point is one character. */
export const countCharacters = (text: string): number => {
  let surrogatePairs = 0
  for (let index = 0; index < text.length; index++) if ((text.codePointAt(index) ?? 0) > 0xffff) surrogatePairs++
  return text.length - surrogatePairs
}

export const AudioSpeechRequest = Schema.Struct({
  model: ModelName,
  input: Schema.NonEmptyString.check(
    Schema.makeFilter(
      (text) => text.length <= 2 * maxCharacters && countCharacters(text) <= maxCharacters,
      {
        expected: `a string of 1 to ${maxCharacters} characters`,
        // JSON Schema counts code points, too
        toJsonSchema: () => ({ maxLength: maxCharacters })
      }
    )
  ).annotateKey({ description: "The text to say: 1 to 4,096 characters." }),
  voice: Schema.Literals(voices).annotateKey({ description: "Who says it." }),
  response_format: optional(Schema.Literals(audioFormats)).annotateKey({
    description:
      "`mp3` unless said otherwise. `pcm` is 24 kHz, mono, 16 bits a sample, little-endian, without a header."
  }),
  speed: optional(between(0.25, 4)).annotateKey({
    description:
      "How fast it is said, as a multiple of the usual; 1 unless said otherwise. The built-in engine speaks at " +
      "0.46 to 2.57: beyond, it goes as far as it can and `x-translation-warnings` names the field."
  }),
  stream_format: optional(Schema.Literal("audio")).annotateKey({
    description: "The answer is always the sound, sent as it is made; never server-sent events."
  })
})
export type AudioSpeechRequest = typeof AudioSpeechRequest.Type

export const audioSpeech = {
  name: "audio.speech",
  summary: "Turn text into speech",
  paths: ["/v1/audio/speech"],
  workloads: ["speech"],
  dialect: "openai",
  request: AudioSpeechRequest,
  response: Schema.Uint8Array,
  responseTypes: Object.values(mediaTypes),
  streams: () => false,
  description: "The sound is sent as it is made. Its media type is that of `response_format`.",
  examples: {
    speech: {
      summary: "A sentence as MP3",
      model: "local-speech",
      body: { input: "Hello from your gateway.", voice: "nova" }
    },
    settings: {
      summary: "Slower, as samples without a header",
      model: "local-speech",
      body: { input: "Hello from your gateway.", voice: "alloy", response_format: "pcm", speed: 0.8 }
    }
  }
} satisfies Operation
