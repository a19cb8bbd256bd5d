/**
 * The process around espeak-ng's WebAssembly build. It says what it is sent, one utterance after the other, and ends with the
 * process that started it.
 */
import startEspeak from "@echogarden/espeak-ng-emscripten"
import type { Saying } from "./Espeak.ts"

/** What this process is sent, and what it answers; "ready" once, before all else. */
export interface Request extends Saying {
  readonly id: number
}
/** Without samples where there is no such voice. */
export type Answer = "ready" | { readonly id: number; readonly samples: Int16Array | undefined }

const answer = (message: Answer): void => {
  process.send?.(message)
}

// Ctrl-C in a terminal reaches this process, too; it ends when the worker has no more use for it
process.on("SIGINT", () => {})
process.on("disconnect", () => process.exit())

const { eSpeakNGWorker: EspeakWorker } = await startEspeak()
const espeak = new EspeakWorker()

/** This build reads SSML, and phonemes between double brackets. A text is neither. */
const plain = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("[[", "[ [")

process.on("message", ({ id, language, pitch, text, variant, wordsPerMinute }: Request) => {
  if (espeak.set_voice(`${language}+${variant}`) !== 0) return answer({ id, samples: undefined })
  espeak.set_pitch(pitch)
  espeak.set_rate(wordsPerMinute)
  const chunks: Array<Int16Array> = []
  let length = 0
  espeak.synthesize(plain(text), (samples) => {
    if (samples !== null) {
      chunks.push(samples)
      length += samples.length
    }
    return false
  })
  const samples = new Int16Array(length)
  let at = 0
  for (const chunk of chunks) {
    samples.set(chunk, at)
    at += chunk.length
  }
  answer({ id, samples })
})

answer("ready")
