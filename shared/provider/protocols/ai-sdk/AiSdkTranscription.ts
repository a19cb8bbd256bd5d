/** Transcribes sound with AI SDK packages. They return text with timestamps, from which every format is made here. */
import { Effect, SchemaGetter } from "effect"
import {
  type TranscriptFormat,
  transcriptFormats,
  TranscriptionForm,
  TranscriptionRequest
} from "../../../contract/operations/audio/Transcriptions.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import { eventsOf } from "../../../contract/Operation.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import { formOf, formReader, isForm, reader, turnFor } from "../../call/RequestBody.ts"
import { fileOf } from "../../call/SoundFile.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import { lostFiles } from "../../dialects/conversation/Losses.ts"
import { toTranscriptUsage, transcriptUsageOf } from "../../dialects/openai/OpenAiUsage.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

const fromJson = reader(TranscriptionRequest)
const fromForm = formReader(TranscriptionForm)

const read = Effect.fnUntraced(function*(call: Call) {
  if (!isForm(call)) return { ...yield* fromJson(call), files: [] }
  const form = yield* formOf(call)
  const request = yield* fromForm(form)
  const texts = [...form].filter(([, value]) => typeof value === "string")
  return { json: SchemaGetter.makeTreeRecord(texts), request, files: lostFiles(form, known) }
})

const known = new Set(Object.keys(TranscriptionRequest.fields))
/** Fields for which neither the SDK nor its answers have a place. */
const lost = ["include", "chunking_strategy"] as const
const settings: Readonly<Record<string, string>> = { timestampGranularities: "timestamp_granularities" }

const isFormat = (name: string): name is TranscriptFormat => transcriptFormats.some((format) => format === name)

export const make = (open: Opener): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { endpoint } = call
    const { files, json, request } = yield* read(call)
    const { language, prompt, temperature, timestamp_granularities: granularities } = request
    const format = request.response_format ?? "json"
    if (!isFormat(format)) {
      return yield* InvalidRequest.at(
        "response_format",
        `must be one of ${transcriptFormats.join(", ")} for this model`,
        "not_supported"
      )
    }
    const opened = yield* open(endpoint)
    const model = yield* modelOf("transcription", opened, endpoint, call)
    yield* turnFor(call)
    const file = yield* fileOf(request.file)
    const audio = new Uint8Array(yield* Effect.promise(() => file.arrayBuffer()))
    const asked = granularities ? { timestampGranularities: [...granularities] } : {}
    const extra = {
      ...unknownFields(json, known),
      ...unknownFields({ language, prompt, temperature }, none),
      ...(model.specificationVersion === "v4" ? {} : asked)
    }
    const answer = yield* attempt({ endpoint, secrets: opened.secrets }, (options) =>
      model.doGenerate({
        ...options,
        ...asked,
        audio,
        mediaType: file.type,
        providerOptions: providerOptions(opened, model, extra)
      }))
    const usage = transcriptUsageOf({ duration: answer.durationInSeconds, usage: answer.usage })
    const transcript: Timed = {
      text: answer.text,
      language: answer.language,
      duration: answer.durationInSeconds,
      segments: answer.segments.map(toCue),
      ...(answer.words === undefined ? {} : { words: answer.words.map(toCue) }),
      usage: usage && toTranscriptUsage(usage)
    }
    const { contentType, text } = request.stream === true ? toStream(transcript) : toFormat[format](transcript)
    sink.start({
      status: 200,
      contentType,
      headers: TranslationWarnings.toHeaders([
        ...files,
        ...lost.filter((name) => (request[name] ?? undefined) !== undefined).map((name) =>
          `${name} is not carried over`
        ),
        ...(timed.has(format) && answer.segments.length === 0
          ? ["response_format has no timestamps with this model"]
          : []),
        ...lostFeatures(answer.warnings).map((feature) => settings[feature] ?? feature)
      ])
    })
    sink.write(Buffer.from(text))
    return usage
  })

const none: ReadonlySet<string> = new Set()

/** The formats with timestamps. */
const timed: ReadonlySet<string> = new Set(["srt", "vtt", "verbose_json"])

/** A piece of the text. Times are in seconds from the beginning of the sound. */
interface Cue {
  readonly text: string
  readonly start: number
  readonly end: number
}

interface Timed {
  readonly text: string
  readonly language: string | undefined
  /** The length of the sound in seconds. */
  readonly duration: number | undefined
  /** Empty if the model returns no timestamps. */
  readonly segments: ReadonlyArray<Cue>
  readonly words?: ReadonlyArray<Cue>
  readonly usage: object | undefined
}

const toCue = (
  { endSecond, startSecond, text }: { readonly text: string; readonly startSecond: number; readonly endSecond: number }
): Cue => ({ text, start: startSecond, end: endSecond })

/** The whole text is one cue if there are no others. */
const cuesOf = ({ duration = 0, segments, text }: Timed): ReadonlyArray<Cue> =>
  segments.length > 0 ? segments : [{ text, start: 0, end: duration }]

/** `01:02:03`, a separator, and milliseconds. */
const timeOf = (seconds: number, separator: "," | "."): string => {
  const ms = Math.round(seconds * 1_000)
  const padded = (count: number, digits = 2) => String(count).padStart(digits, "0")
  const clock = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1_000) % 60]
  return `${clock.map((count) => padded(count)).join(":")}${separator}${padded(ms % 1_000, 3)}`
}

const linesOf = (cues: ReadonlyArray<Cue>, separator: "," | "."): ReadonlyArray<string> =>
  cues.map(({ end, start, text }) => `${timeOf(start, separator)} --> ${timeOf(end, separator)}\n${text.trim()}\n\n`)

interface Written {
  readonly contentType: string
  readonly text: string
}

/** Neutral values of Whisper's measures of a segment, which clients require but the SDK does not have. */
const unmeasured = { tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 }

const json = (value: object): Written => ({ contentType: "application/json", text: JSON.stringify(value) })

const toFormat: Readonly<Record<TranscriptFormat, (transcript: Timed) => Written>> = {
  json: ({ text, usage }) => json({ text, usage }),
  verbose_json: ({ duration, language, segments, text, usage, words }) =>
    json({
      task: "transcribe",
      language,
      duration,
      text,
      segments: segments.map((cue, id) => ({ id, seek: 0, ...cue, ...unmeasured })),
      words: words?.map(({ end, start, text: word }) => ({ word, start, end })),
      usage
    }),
  text: ({ text }) => ({ contentType: "text/plain; charset=utf-8", text: `${text}\n` }),
  srt: (transcript) => ({
    contentType: "application/x-subrip; charset=utf-8",
    text: linesOf(cuesOf(transcript), ",").map((line, index) => `${index + 1}\n${line}`).join("")
  }),
  vtt: (transcript) => ({
    contentType: "text/vtt; charset=utf-8",
    text: `WEBVTT\n\n${linesOf(cuesOf(transcript), ".").join("")}`
  })
}

/** The answer as a stream of two events, because the SDK returns answers whole. */
const toStream = ({ text, usage }: Timed): Written => ({
  contentType: "text/event-stream",
  text: eventsOf({ type: "transcript.text.delta", delta: text }, { type: "transcript.text.done", text, usage })
})
