/** Each audio format is valid, contains the input sound, and is most are emitted while the input continues. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Stream } from "effect"
import { encode, sampleRate } from "../../../services/speech/AudioEncoder.ts"
import { audioFormats } from "../../../shared/contract/operations/audio/Speech.ts"
import { canDecode, decodeAudio, hasFfmpeg, readAudioFile } from "../../fixture/media/AudioFile.ts"
import { until } from "../../fixture/gateway/LocalGateway.ts"
import { pitch, rms, samplesOf } from "../../fixture/media/Sound.ts"

const slice = 1_200

/** A swelling tone in the range of a voice. */
const tone = Int16Array.from(
  { length: 1.51 * sampleRate },
  (_, index) => 20_000 * (index / (1.51 * sampleRate)) * Math.sin(2 * Math.PI * 200 * index / sampleRate)
)
const slices = Array.from(
  { length: Math.ceil(tone.length / slice) },
  (_, index) => tone.slice(index * slice, (index + 1) * slice)
)
const sound = Stream.fromIterable(slices)

const expected = {
  mp3: ["MP3", "mp3", sampleRate, 0.12],
  // Opus counts at 48 kHz; its sound goes up to 12 kHz like that of the others
  opus: ["Ogg", "opus", 48_000, 0.000_1],
  aac: ["ADTS", "aac", sampleRate, 0.12],
  flac: ["FLAC", "flac", sampleRate, 0.000_1],
  wav: ["WAVE", "pcm-s16", sampleRate, 0.000_1]
} as const

const encoded = (format: typeof audioFormats[number]) =>
  Effect.map(Stream.runCollect(encode(format, sound)), (chunks) => Buffer.concat(chunks))

for (const format of audioFormats) {
  describe(format, () => {
    if (format !== "pcm") {
      it.effect("is a valid file of its kind, mono and as long as the sound", () =>
        Effect.gen(function*() {
          const bytes = yield* encoded(format)
          const file = yield* Effect.promise(() => readAudioFile(bytes))
          const [container, codec, rate, tolerance] = expected[format]
          assert.deepInclude(file, { container, codec, sampleRate: rate, channels: 1 })
          // some formats have frames of a fixed length, and pad the last one
          assert.closeTo(file.duration, tone.length / sampleRate, tolerance)
          assert.isAtLeast(file.duration, tone.length / sampleRate - 0.03)
        }))
    }

    it.effect.skipIf(!canDecode(format))("sounds like the input", () =>
      Effect.gen(function*() {
        const bytes = yield* encoded(format)
        const decoded = yield* Effect.promise(() => decodeAudio(format, bytes))
        assert.closeTo((decoded.length - tone.length) / sampleRate, 0, 0.12)
        assert.closeTo(pitch(decoded, sampleRate), 200, 2)
        assert.closeTo(rms(decoded) / rms(tone), 1, 0.1)
        // the tone swells, so that frames in a wrong order would show
        const quarters = [0, 1, 2, 3].map((quarter) =>
          rms(decoded.slice(quarter * tone.length / 4, (quarter + 1) * tone.length / 4))
        )
        assert.deepStrictEqual(quarters, quarters.toSorted((a, b) => a - b))
      }))

    it.live("fails with the error of the input", () =>
      Effect.gen(function*() {
        const broken = Stream.concat(sound, Stream.fail("broken" as const))
        const exit = yield* Effect.exit(Stream.runDrain(encode(format, broken)))
        assert.deepStrictEqual(exit, Exit.fail("broken" as const))
      }))

    // these two state the length at their beginning
    if (format === "wav" || format === "flac") return

    it.live("sends the beginning before the input has ended", () =>
      Effect.gen(function*() {
        const begun = yield* Latch.make()
        const endless = Stream.concat(sound, Stream.fromEffectDrain(begun.await))
        // waits for ever unless bytes arrive before the sound ends
        const bytes = yield* Stream.runFold(encode(format, endless), () => 0, (sum, chunk) => {
          begun.openUnsafe()
          return sum + chunk.length
        })
        assert.isAbove(bytes, 1_000)
      }))

    it.live("releases everything when its reader stops", () =>
      Effect.gen(function*() {
        const begun = yield* Latch.make()
        const ended = yield* Latch.make()
        const endless = Stream.concat(sound, Stream.never).pipe(Stream.ensuring(ended.open))
        const fiber = yield* encode(format, endless).pipe(
          Stream.runForEach(() => begun.open),
          Effect.forkChild
        )
        yield* begun.await
        yield* Fiber.interrupt(fiber)
        yield* ended.await
      }))

    it.live("releases everything when a reader that has stalled goes away", () =>
      Effect.gen(function*() {
        let made = 0
        const noise = Stream.fromEffectRepeat(Effect.sync(() => {
          made++
          return Int16Array.from({ length: slice }, () => (Math.random() - 0.5) * 40_000)
        }))
        const fiber = yield* encode(format, noise).pipe(Stream.runForEach(() => Effect.never), Effect.forkDetach)
        // encodes nothing more once nothing more can be written
        let [seen, quiet] = [0, 0]
        yield* until(() => {
          quiet = made > 0 && made === seen ? quiet + 1 : 0
          seen = made
          return quiet === 20
        })
        yield* Fiber.interrupt(fiber)
      }))
  })
}

describe("lossless", () => {
  it.effect("pcm and wav keep every sample", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(samplesOf(yield* encoded("pcm")), tone)
      const wav = yield* encoded("wav")
      assert.strictEqual(wav.toString("latin1", 0, 4), "RIFF")
      assert.deepStrictEqual(samplesOf(wav.subarray(44)), tone)
    }))

  it.effect("wav and flac state their true length", () =>
    Effect.gen(function*() {
      const wav = yield* encoded("wav")
      assert.deepStrictEqual([wav.readUInt32LE(4), wav.readUInt32LE(40)], [wav.length - 8, tone.length * 2])
      // the number of samples in STREAMINFO, of 36 bits
      const flac = yield* encoded("flac")
      assert.deepStrictEqual([flac.readUInt8(21) & 0xf, flac.readUInt32BE(22)], [0, tone.length])
    }))

  it.effect.skipIf(!hasFfmpeg)("flac keeps every sample", () =>
    Effect.gen(function*() {
      const bytes = yield* encoded("flac")
      assert.deepStrictEqual(yield* Effect.promise(() => decodeAudio("flac", bytes)), tone)
    }))
})

it.effect("encodes a sound shorter than any frame", () =>
  Effect.forEach(audioFormats, (format) =>
    Effect.gen(function*() {
      const bytes = Buffer.concat(yield* Stream.runCollect(encode(format, Stream.make(tone.slice(-400)))))
      if (format === "pcm") assert.lengthOf(bytes, 800)
      else assert.isNotEmpty((yield* Effect.promise(() => readAudioFile(bytes))).packets)
    })))
