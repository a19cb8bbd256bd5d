/** Offers the built-in speech engine to the `local` protocol. */
import { Effect, Layer, Schema, Stream } from "effect"
import { audioSpeech, AudioSpeechRequest, countCharacters, mediaTypes } from "../../shared/contract/AudioSpeech.ts"
import { InternalError, InvalidRequest, ProviderFailed } from "../../shared/contract/JobError.ts"
import { LocalEngines } from "../../shared/provider/Local.ts"
import type { Perform } from "../../shared/provider/Protocol.ts"
import { writeAll } from "../../shared/provider/Sink.ts"
import { LocalSpeech } from "./LocalSpeech.ts"

/** What the catalogue can set for this engine. */
const SpeechOptions = Schema.Struct({
  /** In which language Latin letters are read, by espeak-ng's names: `de`, `pt-br`. `en` unless said otherwise. */
  language: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[a-z]{2,3}(-[a-z0-9]+)*$/i, { expected: "a language such as en or pt-br" }))
  )
})

const decodeOptions = Schema.decodeUnknownEffect(SpeechOptions)
const decodeRequest = Schema.decodeUnknownEffect(Schema.fromJsonString(AudioSpeechRequest))
const text = new TextDecoder()

const perform = (engine: LocalSpeech["Service"]): Perform =>
  Effect.fnUntraced(function*({ body, endpoint }, sink) {
    const options = yield* decodeOptions(endpoint.provider.options ?? {}).pipe(
      Effect.tapError((error) => Effect.logError("the catalogue's options for the speech engine: " + error.message)),
      Effect.mapError(() => new InternalError())
    )
    const request = yield* decodeRequest(text.decode(body)).pipe(
      // ingress has validated it already
      Effect.mapError(() =>
        new InvalidRequest({ message: "The body cannot be read", param: null, code: "invalid_value" })
      )
    )
    const format = request.response_format ?? "mp3"
    const encoded = engine.speak({
      text: request.input,
      voice: request.voice,
      format,
      speed: request.speed ?? 1,
      language: options.language ?? "en"
    }).pipe(
      Stream.tapError((error) => Effect.logError(error.message)),
      Stream.mapError(() =>
        new ProviderFailed({ provider: endpoint.name, reason: "error", status: null, retryAfterMs: null })
      ),
      Stream.map((bytes) => {
        // not before the first sound: until then a failure can still be told by a status
        if (!sink.started) sink.start({ status: 200, contentType: mediaTypes[format], headers: {} })
        return bytes
      })
    )
    yield* writeAll(sink, encoded)
    return { inputTokens: 0, outputTokens: 0, characters: countCharacters(request.input) }
  })

export const layer = Layer.effect(
  LocalEngines,
  Effect.map(LocalSpeech, (engine) => LocalEngines.of({ performs: new Map([[audioSpeech.name, perform(engine)]]) }))
).pipe(Layer.provide(LocalSpeech.layer))
