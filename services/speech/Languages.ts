/**
 * In which language a text is to be read, told by the letters it is written in. Languages that share the Latin alphabet
 * cannot be told apart so; for them the catalogue names one.
 */

/** The language that is read where a script prevails, by espeak-ng's names. */
const scripts: ReadonlyArray<readonly [language: string, letters: RegExp]> = [
  ["ru", /\p{Script=Cyrillic}/gu],
  ["cmn", /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu],
  ["ko", /\p{Script=Hangul}/gu],
  ["ar", /\p{Script=Arabic}/gu],
  ["he", /\p{Script=Hebrew}/gu],
  ["el", /\p{Script=Greek}/gu],
  ["hi", /\p{Script=Devanagari}/gu],
  ["bn", /\p{Script=Bengali}/gu],
  ["pa", /\p{Script=Gurmukhi}/gu],
  ["gu", /\p{Script=Gujarati}/gu],
  ["ta", /\p{Script=Tamil}/gu],
  ["te", /\p{Script=Telugu}/gu],
  ["kn", /\p{Script=Kannada}/gu],
  ["ml", /\p{Script=Malayalam}/gu],
  ["th", /\p{Script=Thai}/gu],
  ["ka", /\p{Script=Georgian}/gu],
  ["hy", /\p{Script=Armenian}/gu],
  ["am", /\p{Script=Ethiopic}/gu]
]

/** Letters that only one of several languages of a script has. */
const kin: ReadonlyArray<readonly [of: string, language: string, letters: RegExp]> = [
  ["ru", "uk", /[іїєґ]/iu],
  ["cmn", "ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ["ar", "fa", /[پچژگ]/u]
]

const anyForeign = /[^\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]/u

/** The language of the script that most letters belong to; `latin` where that is the Latin one, or none. */
export const languageOf = (text: string, latin: string): string => {
  if (!anyForeign.test(text)) return latin
  let most = text.match(/\p{Script=Latin}/gu)?.length ?? 0
  let prevailing: string | undefined
  for (const [language, letters] of scripts) {
    const count = text.match(letters)?.length ?? 0
    if (count <= most) continue
    most = count
    prevailing = language
  }
  return kin.find(([of, , letters]) => of === prevailing && letters.test(text))?.[1] ?? prevailing ?? latin
}
