/**
 * Cuts a text into utterances: short enough that the first is soon heard and that none takes long to make, and cut where a
 * speaker would pause.
 */

/** The first utterance ends as soon as a sentence does, the others when they have grown to this many UTF-16 units. */
const enough = 120
/** No utterance is longer than this, in UTF-16 units. */
const most = 300

const sentences = new Intl.Segmenter("en", { granularity: "sentence" })

/** Where to cut what is too long, in order of preference: behind a clause, between words. */
const cuts = [/^.*[,;:)、，；：](?=.)/su, /^.*\s/su]

/** What a speaker cannot say and the engine might take for the end of the text. A line break is a pause. */
const unspeakable = /[^\P{Cc}\n]/gu

/** Utterances in their order. Nothing is lost but white space between them; none is empty. */
export function* utterancesOf(text: string): Generator<string> {
  let pending = ""
  let first = true
  for (const { segment } of sentences.segment(text.toWellFormed().replaceAll(unspeakable, " "))) {
    // "Dr." is no sentence, whatever the segmenter says: what is short waits for the next
    if (pending.trim().length >= (first ? 20 : enough) || pending.length + segment.length > most) {
      if (pending.trim() !== "") {
        yield pending.trim()
        first = false
      }
      pending = ""
    }
    pending += segment
    while (pending.length > most) {
      const head = headOf(pending)
      pending = pending.slice(head.length)
      if (head.trim() === "") continue
      yield head.trim()
      first = false
    }
  }
  if (pending.trim() !== "") yield pending.trim()
}

/** The longest beginning of a long text that is not too long and ends well. */
const headOf = (text: string): string => {
  const window = text.slice(0, most)
  for (const cut of cuts) {
    const head = cut.exec(window)?.[0] ?? ""
    if (head.length > most / 4) return head
  }
  // never between the two halves of a character
  const half = (text.codePointAt(most - 1) ?? 0) > 0xffff
  return window.slice(0, half ? most - 1 : most)
}
