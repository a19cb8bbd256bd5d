/**
 * The language that a text is read in, by the letters it is written in. Languages that share the Latin alphabet cannot be
 * told apart so; for them the catalogue names one.
 */

/** Scripts and the language that each is read as, by espeak-ng's names. */
const scripts = `
  ru:Cyrillic cmn:Han ja:Hiragana ja:Katakana ko:Hangul ar:Arabic he:Hebrew el:Greek hi:Devanagari bn:Bengali pa:Gurmukhi
  gu:Gujarati ta:Tamil te:Telugu kn:Kannada ml:Malayalam th:Thai ka:Georgian hy:Armenian am:Ethiopic
`.trim().split(/\s+/u).map((entry) => {
  const [language = "", script] = entry.split(":")
  return { language, letters: new RegExp(`\\p{Script=${script}}`, "gu") }
})

/** Letters that tell one language of a script from the usual one. */
const kin: ReadonlyArray<readonly [of: string, language: string, letters: RegExp]> = [
  ["ru", "uk", /[іїєґ]/iu],
  ["cmn", "ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ["ar", "fa", /[پچژگ]/u]
]

const anyForeign = /[^\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]/u

/** The language of the script that most letters belong to; `latin` if that is the Latin one, or none. */
export const languageOf = (text: string, latin: string): string => {
  if (!anyForeign.test(text)) return latin
  const latinLetters = text.match(/\p{Script=Latin}/gu)?.length ?? 0
  const counts = scripts.map(({ language, letters }) => ({ language, count: text.match(letters)?.length ?? 0 }))
  const { count, language } = counts.toSorted((a, b) => b.count - a.count)[0]!
  if (count <= latinLetters) return latin
  return kin.find(([of, , letters]) => of === language && letters.test(text))?.[1] ?? language
}
