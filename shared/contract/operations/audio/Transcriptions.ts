/**
 * POST /v1/audio/transcriptions and POST /v1/audio/translations: speech to text, in the language of the speech or in English.
 *
 * A request is `multipart/form-data` with the audio as a file, or JSON with the audio as text.
 */
import { Schema, Struct } from "effect"
import { between, field, formField, formFile, JsonObject, ModelName, optional } from "../../Fields.ts"
import { soundForm, soundOutline } from "../../outlines/Outlines.ts"
import { eventsOf, type Operation } from "../../Operation.ts"

/** The formats that the gateway itself can make from a transcript. */
export const transcriptFormats = ["json", "text", "srt", "vtt", "verbose_json"] as const
export type TranscriptFormat = typeof transcriptFormats[number]

/** The media types of formats that are not JSON. */
export const transcriptTypes = ["text/plain", "text/vtt", "application/x-subrip"]

const fileDescription = "The sound: FLAC, MP3, MP4, M4A, Ogg, WAV or WebM, as far as the model reads it."

const settings = {
  prompt: Schema.String.annotate({ description: "A text that guides the style, or precedes the sound." }),
  response_format: Schema.NonEmptyString.annotate({
    description: `${transcriptFormats.map((format) => `\`${format}\``).join(", ")}, or another that the model has.`,
    default: "json"
  }),
  temperature: between(0, 1).annotate({ description: "How freely to choose words; 0 is the least." })
}

const transcriptionSettings = {
  ...settings,
  language: Schema.NonEmptyString.annotate({ description: "The language spoken, such as `en`." }),
  stream: Schema.Boolean.annotate({
    description: "Send the text as server-sent events while it is recognised.",
    default: false
  })
}

/** Fields that a form sends as `name[]`. */
const lists = {
  timestamp_granularities: optional(
    Schema.Array(Schema.Literals(["word", "segment"])),
    "The timestamps in `verbose_json`. Default: of segments."
  ),
  include: optional(Schema.Array(Schema.String), "More to return: `logprobs`.")
}

const chunking_strategy = optional(
  Schema.Union([Schema.NonEmptyString, JsonObject]),
  "How the provider cuts the sound: `auto`, or settings."
)

const jsonFields = {
  model: ModelName,
  file: field(Schema.NonEmptyString, `${fileDescription} A data URL or base64.`)
}

const formFields = {
  model: ModelName,
  file: field(Schema.Union([formFile, Schema.NonEmptyString]), `${fileDescription} A file, or a text as in JSON.`)
}

export const TranscriptionRequest = Schema.Struct({
  ...jsonFields,
  ...Struct.map(Struct.map(transcriptionSettings, Schema.NullOr), Schema.optionalKey),
  ...lists,
  chunking_strategy
})
export type TranscriptionRequest = typeof TranscriptionRequest.Type

export const TranscriptionForm = Schema.fromFormData(
  Schema.Struct({ ...formFields, ...Struct.map(transcriptionSettings, formField), ...lists, chunking_strategy })
)
export type TranscriptionForm = typeof TranscriptionForm.Type

const TranslationRequest = Schema.Struct({
  ...jsonFields,
  ...Struct.map(Struct.map(settings, Schema.NullOr), Schema.optionalKey)
})

const TranslationForm = Schema.fromFormData(Schema.Struct({ ...formFields, ...Struct.map(settings, formField) }))

const Seconds = (description: string) => field(Schema.Finite, `${description}, in seconds.`)

const TranscriptUsage = Schema.Struct({
  type: field(Schema.Literals(["tokens", "duration"]), "What the provider bills."),
  seconds: field(Schema.optionalKey(Schema.Finite), "Duration of the sound."),
  input_tokens: field(Schema.optionalKey(Schema.Int), "Tokens of sound and prompt."),
  output_tokens: field(Schema.optionalKey(Schema.Int), "Tokens of the text."),
  total_tokens: field(Schema.optionalKey(Schema.Int), "Both together.")
})

export const Transcript = Schema.Struct({
  text: field(Schema.String, "The whole text."),
  language: field(Schema.optionalKey(Schema.String), "The language spoken; in `verbose_json`."),
  duration: field(Schema.optionalKey(Schema.Finite), "Duration of the sound, in seconds; in `verbose_json`."),
  segments: field(
    Schema.optionalKey(Schema.Array(Schema.Struct({
      start: Seconds("Beginning of the segment"),
      end: Seconds("End of the segment"),
      text: field(Schema.String, "Its text.")
    }))),
    "In `verbose_json`. Providers add fields of their own."
  ),
  words: field(
    Schema.optionalKey(Schema.Array(Schema.Struct({
      start: Seconds("Beginning of the word"),
      end: Seconds("End of the word"),
      word: field(Schema.String, "The word.")
    }))),
    "In `verbose_json` with the timestamps of words."
  ),
  usage: field(Schema.optionalKey(TranscriptUsage), "What the request is billed by, if the provider reports it.")
})
export type Transcript = typeof Transcript.Type

/** A short silence as a WAV file. */
const sound = "data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YRAAAAAAAAAAAAAAAAAAAAAAAAAA"

const needs = "Needs a model of a provider; no built-in engine recognises speech. "
const formats = "`response_format` sets its media type. Plain text and subtitles report no usage."

export const transcriptions = {
  name: "audio.transcriptions",
  summary: "Turn speech into text",
  paths: ["/v1/audio/transcriptions"],
  workloads: ["speech"],
  dialect: "openai",
  needsProvider: true,
  request: TranscriptionRequest,
  outline: soundOutline,
  form: TranscriptionForm,
  formOutline: soundForm,
  response: Transcript,
  responseTypes: transcriptTypes,
  streams: ({ stream }) => stream === true,
  description:
    `${needs}Official clients send a form; JSON with the audio as a data URL or base64 means the same. ${formats}`,
  examples: {
    json: {
      summary: "Sound as text",
      model: "whisper-1",
      body: { file: sound, language: "en" },
      answer: { text: "Bees dance.", usage: { type: "duration", seconds: 1 } }
    },
    form: {
      summary: "A form, with timestamps; the sound is a file, or a text as here",
      model: "whisper-1",
      body: { file: sound, response_format: "verbose_json" },
      isForm: true,
      answer: {
        language: "english",
        duration: 1,
        text: "Bees dance.",
        segments: [{ start: 0, end: 1, text: "Bees dance." }],
        usage: { type: "duration", seconds: 1 }
      }
    },
    stream: {
      summary: "A stream",
      model: "gpt-4o-transcribe",
      body: { file: sound, stream: true },
      answer: eventsOf(
        { type: "transcript.text.delta", delta: "Bees dance." },
        {
          type: "transcript.text.done",
          text: "Bees dance.",
          usage: { type: "tokens", input_tokens: 14, output_tokens: 4, total_tokens: 18 }
        }
      )
    }
  }
} satisfies Operation

export const translations = {
  name: "audio.translations",
  summary: "Turn speech into English text",
  paths: ["/v1/audio/translations"],
  workloads: ["speech"],
  dialect: "openai",
  needsProvider: true,
  request: TranslationRequest,
  outline: soundOutline,
  form: TranslationForm,
  formOutline: soundForm,
  response: Transcript,
  responseTypes: transcriptTypes,
  streams: () => false,
  description: `${needs}Only the protocol \`openai\` translates sound. ${formats}`,
  examples: {
    json: {
      summary: "Sound as text",
      model: "whisper-1",
      body: { file: sound },
      answer: { text: "Bees dance." }
    },
    form: {
      summary: "A form; the sound is a file, or a text as here",
      model: "whisper-1",
      body: { file: sound },
      isForm: true,
      answer: { text: "Bees dance." }
    }
  }
} satisfies Operation
