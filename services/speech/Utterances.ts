/** Cuts a text into utterances, so short that the first is soon heard and that none takes long to make. */
import { slices } from "../../shared/text/Slices.ts"

/** The first utterance ends with the first sentence, the others when they have grown to this many UTF-16 units. */
const enough = 120
/** No utterance is longer than this, in UTF-16 units. */
const most = 300

const sentences = new Intl.Segmenter("en", { granularity: "sentence" })

/** What a speaker cannot say and the engine might take for the end of the text. A line break is a pause. */
const unspeakable = /[^\P{Cc}\n]/gu

/** Utterances in their order. Nothing is lost but white space between them; none is empty. */
export function* utterancesOf(text: string): Generator<string> {
  let pending = ""
  // "Dr." is no sentence, whatever the segmenter says: what is short waits for the next
  let least = 20
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
