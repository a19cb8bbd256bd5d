/** The process around espeak-ng's WebAssembly build: answers one request after the other and ends with its parent. */
import startEspeak from "@echogarden/espeak-ng-emscripten"
import type { Saying } from "./Espeak.ts"

/** `id` is at least 1. */
export interface Request extends Saying {
  readonly id: number
}
/** Without samples if the voice does not exist. The id 0 reports that this process is ready. */
export interface Answer {
  readonly id: number
  readonly samples?: Int16Array
}

const send = (answer: Answer): void => {
  process.send?.(answer)
}

// Ctrl-C in a terminal reaches this process too, but the worker ends it
process.on("SIGINT", () => {})
process.on("disconnect", () => process.exit())

const { eSpeakNGWorker: EspeakWorker } = await startEspeak()
const espeak = new EspeakWorker()

/** Escapes text that this build would read as SSML or, in double brackets, as phonemes. */
const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("[[", "[ [")

process.on("message", ({ id, language, pitch, text, variant, wordsPerMinute }: Request) => {
  if (espeak.set_voice(`${language}+${variant}`) !== 0) return send({ id })
  espeak.set_pitch(pitch)
  espeak.set_rate(wordsPerMinute)
  const chunks: Array<Int16Array> = []
  espeak.synthesize(escape(text), (samples) => {
    if (samples !== null) chunks.push(samples)
    return false
  })
  const samples = new Int16Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    samples.set(chunk, at)
    at += chunk.length
  }
  send({ id, samples })
})

send({ id: 0 })
