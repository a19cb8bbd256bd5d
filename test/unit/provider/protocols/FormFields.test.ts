/** The unknown fields of a form: texts and lists reach the provider, and files, which have no place anywhere, are named in a warning. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { transcriptions } from "../../../../shared/contract/operations/audio/Transcriptions.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import type { Perform } from "../../../../shared/provider/call/Protocol.ts"
import { LocalEngines } from "../../../../shared/provider/protocols/local/Local.ts"
import { stripes } from "../../../fixture/calls/ImagesEngine.ts"
import { callLocally } from "../../../fixture/calls/LocalCall.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { sound } from "../../../fixture/client/Requests.ts"
import * as RecordingPackage from "../../../fixture/fields/RecordingPackage.ts"

const key = "sk-of-the-package"
const provider = { protocol: "ai-sdk", options: { package: RecordingPackage.install() } } as const

const warningsOf = ({ head }: Answered) => head?.headers["x-translation-warnings"]

const edit = Effect.map(stripes(8, 8, [[200, 0, 0]]), (picture) => {
  const form = new FormData()
  form.set("model", "alias")
  form.set("prompt", "mix")
  form.append("image[]", new File([Uint8Array.from(picture)], "a.png"))
  form.set("sketch", new File(["x"], "b.png"))
  return form
})

describe("the unknown fields of a form", () => {
  it.effect("for a transcription by a package", () =>
    Effect.gen(function*() {
      const form = new FormData()
      form.set("model", "alias")
      form.set("file", sound)
      for (const name of ["Ada", "Bo"]) form.append("known_speaker_names[]", name)
      form.append("voices[]", new File(["x"], "ada.wav"))
      const answered = yield* callProvider({
        ...{ operation: transcriptions, body: form, name: "sdk", model: "alias", upstreamModel: "m", key, provider }
      })
      assert.deepNestedInclude(RecordingPackage.calls.at(-1), {
        "providerOptions.recording.known_speaker_names": ["Ada", "Bo"]
      })
      assert.strictEqual(warningsOf(answered), "voices has no effect")
    }))

  it.effect("for an edit by a package", () =>
    Effect.gen(function*() {
      const body = yield* edit
      const answered = yield* callProvider({
        ...{ operation: imageEdits, body, name: "sdk", model: "alias", upstreamModel: "m", key, provider }
      })
      assert.strictEqual(warningsOf(answered), "sketch has no effect")
    }))

  it.effect("for an edit by a built-in engine", () =>
    Effect.gen(function*() {
      const perform: Perform = (_call, sink) =>
        Effect.sync(() => {
          sink.start({ status: 200, contentType: "application/json", headers: {} })
          sink.write(Buffer.from("{}"))
          return undefined
        })
      const engines = Layer.succeed(LocalEngines, { performs: new Map([[imageEdits.name, perform]]) })
      const answered = yield* callLocally(engines, imageEdits, "alias", yield* edit)
      assert.strictEqual(warningsOf(answered), "sketch has no effect")
    }))
})
