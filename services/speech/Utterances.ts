/** Splits a text into utterances, so that the first is heard soon and none takes long to make. */
import { slices } from "../../shared/text/Slices.ts"

/** An utterance ends with the sentence that brings it to this many UTF-16 units. */
const enough = 120
/** The limit for the first utterance. It is longer than `Dr.`, which the segmenter takes for a sentence. */
const enoughAtFirst = 20
const most = 300

const sentences = new Intl.Segmenter("en", { granularity: "sentence" })

/** Characters that cannot be spoken, and that espeak-ng might take for the end of the text. A line break is a pause. */
const unspeakable = /[^\P{Cc}\n]/gu

/** The utterances in order, none of them empty. Only white space between them is lost. */
export function* utterancesOf(text: string): Generator<string> {
  let pending = ""
  let least = enoughAtFirst
  for (const { segment } of sentences.segment(text.toWellFormed().replaceAll(unspeakable, " "))) {
    for (const piece of slices(segment, most)) {
      const isFull = pending.trim().length >= least || pending.length + piece.length > most
      if (isFull && pending.trim() !== "") {
        yield pending.trim()
        least = enough
      }
      pending = isFull ? piece : pending + piece
    }
  }
  if (pending.trim() !== "") yield pending.trim()
}
