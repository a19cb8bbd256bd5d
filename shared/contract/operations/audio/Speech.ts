/** POST /v1/audio/speech: text to speech. The answer is audio. */
import { Schema } from "effect"
import { between, field, ModelName, optional } from "../../Fields.ts"
import { speechOutline } from "../../outlines/Outlines.ts"
import type { Operation } from "../../Operation.ts"

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

const maxCharacters = 4_096

/** The number of characters as Unicode code points, so that an emoji of one code point is one character. */
export const countCharacters = (text: string): number => {
  let surrogatePairs = 0
  for (let index = 0; index < text.length; index++) if ((text.codePointAt(index) ?? 0) > 0xffff) surrogatePairs++
  return text.length - surrogatePairs
}

export const AudioSpeechRequest = Schema.Struct({
  model: ModelName,
  input: Schema.NonEmptyString.check(
    Schema.makeFilter((text) => text.length <= 2 * maxCharacters && countCharacters(text) <= maxCharacters, {
      expected: `a string of 1 to ${maxCharacters} characters`,
      // JSON Schema counts code points, too
      toJsonSchema: () => ({ maxLength: maxCharacters })
    })
  ).annotateKey({ description: "Text to speak: 1 to 4,096 characters." }),
  voice: field(
    Schema.Union([
      Schema.NonEmptyString,
      Schema.Struct({ id: field(Schema.NonEmptyString, "Id of a voice that the provider stores.") })
    ]),
    `Who speaks: ${voices.map((voice) => `\`${voice}\``).join(", ")}, or another voice that the model has.`
  ),
  response_format: optional(
    Schema.Literals(audioFormats),
    "Encoding of the audio. `pcm` is 24 kHz, mono, 16 bits per sample, little-endian, without a header.",
    "mp3"
  ),
  speed: optional(
    between(0.25, 4),
    "Speed as a multiple of normal. The built-in engine supports 0.46 to 2.57; it clamps other " +
      "values and names the field in `x-translation-warnings`.",
    1
  ),
  stream_format: optional(
    Schema.Literal("audio"),
    "The answer is audio, sent as it is generated. Only providers of this format also make `sse`: server-sent events, with usage.",
    "audio"
  )
})
export type AudioSpeechRequest = typeof AudioSpeechRequest.Type

export const audioSpeech = {
  name: "audio.speech",
  summary: "Turn text into speech",
  paths: ["/v1/audio/speech"],
  workloads: ["speech"],
  dialect: "openai",
  request: AudioSpeechRequest,
  outline: speechOutline,
  response: Schema.Uint8Array,
  responseTypes: Object.values(mediaTypes),
  streams: ({ stream_format: form }) => form === "sse",
  description:
    "The audio is sent as it is generated; WAV and FLAC of the built-in engine, which state their length at the " +
    "beginning, when it is complete. `response_format` sets its media type.",
  examples: {
    speech: {
      summary: "A sentence as MP3",
      model: "local-speech",
      body: { input: "Hello from your gateway.", voice: "nova" }
    },
    settings: {
      summary: "Slower, as raw samples",
      model: "local-speech",
      body: { input: "Hello from your gateway.", voice: "alloy", response_format: "pcm", speed: 0.8 }
    }
  }
} satisfies Operation
