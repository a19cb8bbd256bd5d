/** Makes speech with AI SDK packages. */
import { Effect, Schema } from "effect"
import { isUtf8 } from "node:buffer"
import { AudioSpeechRequest, countCharacters, mediaTypes } from "../../../contract/operations/audio/Speech.ts"
import { optional } from "../../../contract/Fields.ts"
import { ProviderFailed } from "../../../contract/JobError.ts"
import { carried, lostIn } from "../../dialects/conversation/Losses.ts"
import * as Json from "../../json/Json.ts"
import { decoder, reader } from "../../call/RequestBody.ts"
import type { Perform } from "../../call/Protocol.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

/** Fields that the API lacks and the SDK has. */
const Known = Schema.Struct({
  instructions: optional(Schema.String),
  language: optional(Schema.String)
})
const read = reader(AudioSpeechRequest)
const readKnown = decoder(Known)
const known = new Set([...Object.keys(AudioSpeechRequest.fields), ...Object.keys(Known.fields)])
const settings: Readonly<Record<string, string>> = { outputFormat: "response_format" }

const isSound = (mediaType: string | undefined): mediaType is string => mediaType?.startsWith("audio/") === true

/** Whether an answer is text instead of sound. Packages accept any answer with status 200, even a page or an error. */
const isText = (sound: Uint8Array): boolean =>
  isUtf8(sound) && /^\s*[{<]/.test(Buffer.from(sound.subarray(0, 64)).toString("latin1"))

export const make = (open: Opener): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { endpoint } = call
    const { json, request } = yield* read(call)
    const { instructions, language } = yield* readKnown(call)
    const opened = yield* open(endpoint)
    const model = yield* modelOf("speech", opened, endpoint, call)
    const voice = typeof request.voice === "string" ? request.voice : request.voice.id
    const format = request.response_format ?? "mp3"
    const { audio, response, warnings } = yield* attempt({ endpoint, secrets: opened.secrets }, (options) =>
      model.doGenerate({
        ...options,
        ...(typeof instructions === "string" ? { instructions } : {}),
        ...(typeof language === "string" ? { language } : {}),
        text: request.input,
        voice: opened.options.voices?.[voice] ?? voice,
        outputFormat: format,
        ...(typeof request.speed === "number" ? { speed: request.speed } : {}),
        providerOptions: providerOptions(opened, model, unknownFields(json, known))
      }))
    const sound = typeof audio === "string" ? Buffer.from(audio, "base64") : audio
    if (sound.length === 0 || isText(sound)) {
      return yield* ProviderFailed.malformed(endpoint.name)
    }
    const mediaType = response.headers?.["content-type"]
    sink.start({
      status: 200,
      contentType: isSound(mediaType) ? mediaType : mediaTypes[format],
      headers: TranslationWarnings.toHeaders([
        ...lostIn(Json.fields(json)["voice"], carried("id"), "voice"),
        ...lostFeatures(warnings).map((feature) =>
          settings[feature] ?? feature
        )
      ])
    })
    sink.write(sound)
    return { inputTokens: 0, outputTokens: 0, characters: countCharacters(request.input) }
  })
