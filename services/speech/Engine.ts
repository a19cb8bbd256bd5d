/** Offers the built-in speech engine to the `local` protocol. */
import { Effect, Layer, Schema, Stream } from "effect"
import * as Contract from "../../shared/contract/operations/audio/Speech.ts"
import { InvalidRequest, ProviderFailed } from "../../shared/contract/JobError.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import * as Options from "../../shared/provider/call/Options.ts"
import type { Perform } from "../../shared/provider/call/Protocol.ts"
import { decoder } from "../../shared/provider/call/RequestBody.ts"
import { writeAll } from "../../shared/provider/transport/Sink.ts"
import * as TranslationWarnings from "../../shared/provider/call/TranslationWarnings.ts"
import { LocalSpeech, speeds } from "./LocalSpeech.ts"

const language = Schema.String.check(
  Schema.isPattern(/^[a-z]{2,3}(-[a-z0-9]+)*$/i, { expected: "a language such as en or pt-br" })
)

/** Settings of this engine in the catalogue. `language` is by espeak-ng's names (`de`, `pt-br`) and `en` by default. */
const decodeOptions = Options.reader(Schema.Struct({ language: Schema.optionalKey(language) }))
const decodeRequest = decoder(Contract.AudioSpeechRequest)

const isVoice = (voice: unknown): voice is Contract.Voice => Contract.voices.some((own) => own === voice)

const perform = (engine: LocalSpeech["Service"]): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const { language = "en" } = yield* decodeOptions(call.endpoint)
    const { input, response_format, voice, ...request } = yield* decodeRequest(call)
    if (!isVoice(voice)) {
      return yield* InvalidRequest.at("voice", `must be one of ${Contract.voices.join(", ")} for this model`)
    }
    const format = response_format ?? "mp3"
    const speed = request.speed ?? 1
    const isClamped = speed < speeds.slowest || speed > speeds.fastest
    const range = `${speeds.slowest.toFixed(2)} to ${speeds.fastest.toFixed(2)}`
    const headers = TranslationWarnings.toHeaders(isClamped ? [`speed is limited to ${range}`] : [])
    const encoded = engine.speak({ text: input, voice, format, speed, language }).pipe(
      Stream.tapError((error) => Effect.logError(error.message)),
      Stream.mapError(() =>
        new ProviderFailed({ provider: call.endpoint.name, reason: "error", status: null, retryAfterMs: null })
      ),
      Stream.map((bytes) => {
        // not before the first sound: until then a failure can still set the status
        if (!sink.hasStarted) sink.start({ status: 200, contentType: Contract.mediaTypes[format], headers })
        return bytes
      })
    )
    yield* writeAll(sink, encoded)
    return { inputTokens: 0, outputTokens: 0, characters: Contract.countCharacters(input) }
  })

export const layerNoDeps = Layer.effect(
  LocalEngines,
  Effect.map(
    LocalSpeech,
    (engine) => LocalEngines.of({ performs: new Map([[Contract.audioSpeech.name, perform(engine)]]) })
  )
)

export const layer = layerNoDeps.pipe(Layer.provide(LocalSpeech.layer))
