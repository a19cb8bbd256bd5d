/** The speech engine: six voices, many speeds, synthesised while it is played. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer, Stream } from "effect"
import { execFileSync } from "node:child_process"
import * as Processes from "../../../services/speech/Espeak.ts"
import { Espeak, type Saying } from "../../../services/speech/Espeak.ts"
import { LocalSpeech, type Speech, speeds } from "../../../services/speech/LocalSpeech.ts"
import { audioFormats, voices } from "../../../shared/contract/operations/audio/Speech.ts"
import { canDecode, decodeAudio } from "../../fixture/media/AudioFile.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { pitch, rms, samplesOf, spectralDistance, spectrum } from "../../fixture/media/Sound.ts"

const sentence = "The quick brown fox jumps over the lazy dog. It was a bright cold day in April."
const story = "It was the best of times, it was the worst of times. It was the age of wisdom! Was it foolishness? "
  .repeat(50).slice(0, 4_096)

const collect = Effect.fnUntraced(function*(speech: Partial<Speech>) {
  const engine = yield* LocalSpeech
  const whole: Speech = { text: sentence, voice: "alloy", format: "pcm", speed: 1, language: "en", ...speech }
  return Buffer.concat(yield* Stream.runCollect(engine.speak(whole)))
})

const samples = (speech: Partial<Speech>) => Effect.map(collect(speech), samplesOf)
const seconds = (speech: Partial<Speech>) => Effect.map(samples(speech), ({ length }) => length / 24_000)

/** How many utterances the synthesiser was asked for, and how many it has finished. */
const synthesis = { asked: 0, done: 0 }

/** The engine over this synthesiser, which counts its work. */
const layerCounting = <E, R>(espeak: Layer.Layer<Espeak, E, R>) =>
  LocalSpeech.layerNoDeps.pipe(
    Layer.provide(Layer.effect(
      Espeak,
      Effect.map(Espeak, ({ say }) =>
        Espeak.of({
          say: (saying) => {
            synthesis.asked++
            return Effect.tap(say(saying), () => Effect.sync(() => synthesis.done++))
          }
        }))
    )),
    Layer.provideMerge(espeak)
  )

describe("the engine", () => {
  layer(layerCounting(Processes.layer), { excludeTestServices: true })((it) => {
    it.effect("six voices sound like six speakers", () =>
      Effect.gen(function*() {
        const speakers = yield* Effect.forEach(voices, (voice) =>
          Effect.map(samples({ voice }), (sound) => ({
            voice,
            pitch: pitch(sound, 24_000),
            spectrum: spectrum(sound, 24_000),
            loudness: rms(sound)
          })))
        for (const one of speakers) {
          assert.isAbove(one.loudness, 500, one.voice)
          for (const other of speakers) {
            if (one === other) continue
            const pair = `${one.voice} and ${other.voice}`
            assert.isAbove(spectralDistance(one.spectrum, other.spectrum), 1.5, pair)
            assert.isAbove(Math.abs(Math.log2(one.pitch / other.pitch)), 0.08, pair)
          }
        }
      }))

    it.effect("the speed changes the duration, not the pitch", () =>
      Effect.gen(function*() {
        const usual = yield* samples({})
        const usualPitch = pitch(usual, 24_000)
        for (const speed of [0.5, 0.75, 1.5, 2, 2.5]) {
          const sound = yield* samples({ speed })
          assert.closeTo(sound.length * speed / usual.length, 1, 0.3, `at ${speed}`)
          assert.closeTo(pitch(sound, 24_000) / usualPitch, 1, 0.12, `at ${speed}`)
          assert.closeTo(rms(sound) / rms(usual), 1, 0.25, `at ${speed}`)
        }
        // beyond its own range the synthesiser goes as far as it can
        assert.strictEqual((yield* samples({ speed: 4 })).length, (yield* samples({ speed: speeds.fastest })).length)
        assert.strictEqual(
          (yield* samples({ speed: 0.25 })).length,
          (yield* samples({ speed: speeds.slowest })).length
        )
      }))

    it.effect("says the same in every format", () =>
      Effect.gen(function*() {
        const wanted = yield* samples({ voice: "nova" })
        for (const format of audioFormats.filter(canDecode)) {
          const bytes = yield* collect({ voice: "nova", format })
          const sound = yield* Effect.promise(() => decodeAudio(format, bytes))
          assert.closeTo(sound.length / wanted.length, 1, 0.03, format)
          assert.isBelow(spectralDistance(spectrum(sound, 24_000), spectrum(wanted, 24_000)), 1.5, format)
        }
      }))

    it.effect("speaks 4,096 characters, and starts long before all are synthesised", () =>
      Effect.gen(function*() {
        const { speak } = yield* LocalSpeech
        const before = synthesis.done
        let atFirst: number | undefined
        const bytes = yield* speak({ text: story, voice: "echo", format: "pcm", speed: 2, language: "en" }).pipe(
          Stream.runFold(() => 0, (sum, chunk) => {
            atFirst ??= synthesis.done - before
            return sum + chunk.length
          })
        )
        const utterances = synthesis.done - before
        assert.isAbove(utterances, 10)
        assert.isBelow(atFirst ?? utterances, utterances / 2)
        assert.isAbove(bytes / 48_000, 90)
      }))

    it.effect("is no faster than its client, and stops with it", () =>
      Effect.gen(function*() {
        const { speak } = yield* LocalSpeech
        const begun = yield* Latch.make()
        const before = synthesis.asked
        const fiber = yield* speak({ text: story, voice: "echo", format: "pcm", speed: 1, language: "en" }).pipe(
          Stream.runForEach(() => Effect.andThen(begun.open, Effect.never)),
          Effect.forkChild
        )
        yield* begun.await
        yield* Fiber.interrupt(fiber)
        // one utterance being read, one in the buffer, one waiting for the buffer
        const heard = synthesis.asked - before
        assert.isAtMost(heard, 4)
        // clients are served in turn: once this ends, so has the first client's last utterance
        yield* collect({ text: "Next." })
        assert.isAtMost(synthesis.asked - before, heard + 1)
      }))

    it.effect("reads phonemes and markup literally", () =>
      Effect.gen(function*() {
        // as phonemes this would be shorter than as letters, as markup it would be silent
        for (
          const text of ["[[h@l'oU]]", "<break time='9s'/>", "&amp; &lt; &#65;", "-s 400", "--help", "; rm -rf /"]
        ) {
          const duration = yield* seconds({ text })
          assert.isTrue(duration > 0.6 && duration < 9, `${text}: ${duration} s`)
        }
        const [hello, more] = [yield* seconds({ text: "hello" }), yield* seconds({ text: "hello\u0000 hello hello" })]
        assert.isAbove(more, hello * 1.5)
      }))

    it.effect("sends sound even if there is nothing to say", () =>
      Effect.gen(function*() {
        for (const text of ["\n", "...", "\u0000"]) assert.isAbove((yield* collect({ text })).length, 0)
        for (const format of audioFormats) assert.isAbove((yield* collect({ text: " ", format })).length, 0)
      }))

    it.effect("speaks the language that the catalogue names", () =>
      Effect.gen(function*() {
        const { say } = yield* Espeak
        const text = "Привет, как дела? Сегодня хорошая погода."
        const russian = yield* say({ text, variant: "f4", pitch: 25, wordsPerMinute: 175, language: "ru" })
        const heard = yield* samples({ text, language: "ru" })
        assert.closeTo(heard.length / 24_000, russian.length / 22_050, 0.1)
        // in English the letters are spelt
        assert.isAbove((yield* samples({ text })).length, heard.length * 1.2)
      }))

    it.effect("reports an unknown language", () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(collect({ language: "xx" }))
        assert.isTrue(Exit.isFailure(exit))
        assert.isAbove(yield* seconds({}), 3)
      }))
  })
})

/** This process's children that run espeak-ng. */
const children = (): ReadonlyArray<number> =>
  execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="]).toString().split("\n").flatMap((line) => {
    const [pid, parent, ...args] = line.trim().split(/\s+/)
    return Number(parent) === process.pid && args.some((arg) => arg.endsWith("espeak-child.ts")) ? [Number(pid)] : []
  })

const saying: Saying = { text: "Hello.", language: "en-us", variant: "f4", pitch: 50, wordsPerMinute: 175 }

describe("the synthesiser's process", () => {
  const inScope = <A, E>(effect: Effect.Effect<A, E, Espeak>) => Effect.provide(effect, Processes.layer)

  it.live("is replaced if it is killed while idle", () =>
    inScope(Effect.gen(function*() {
      const { say } = yield* Espeak
      yield* say(saying)
      const [first] = children()
      assert.isDefined(first)
      process.kill(first ?? 0, "SIGKILL")
      assert.isAbove((yield* say(saying)).length, 5_000)
      assert.notInclude(children(), first)
    })))

  it.live("loses nothing if it dies during an utterance", () =>
    inScope(Effect.gen(function*() {
      const { say } = yield* Espeak
      yield* say(saying)
      const [first = 0] = children()
      process.kill(first, "SIGSTOP")
      const long = { ...saying, text: sentence.repeat(3) }
      const fiber = yield* Effect.forkChild(say(long), { startImmediately: true })
      process.kill(first, "SIGKILL")
      assert.isAbove((yield* Fiber.join(fiber)).length, 22_050 * 8)
    })))

  it.live("is shared, and ends with the service", () =>
    Effect.gen(function*() {
      yield* inScope(Effect.gen(function*() {
        const { say } = yield* Espeak
        const sounds = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], () => say(saying), { concurrency: "unbounded" })
        assert.lengthOf(sounds, 8)
        assert.lengthOf(children(), 1)
      }))
      yield* Effect.promise(() => eventually(async () => children(), (pids) => pids.length === 0))
    }))
})
