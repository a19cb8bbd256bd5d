/** Puts the engine's answer into words: the sentences that were found, or what the engine has to say for itself. */
import { choose } from "./Extract.ts"
import type { Passage } from "./Extract.ts"
import type { Material } from "./Material.ts"
import { clip } from "./Sentences.ts"

const engine = "I am the gateway's built-in extractive engine"

/** Different ways to say what the engine is; each holds what the user wrote in place of `%`. */
const aboutItself = [
  `%${engine}: there is no model behind me, and I answer only with sentences from the conversation. Paste a text and ask about it.`,
  `%Nothing in the conversation answers that. ${engine} and can only quote from text that you give me.`,
  `%I found no text in the conversation to answer from. ${engine}: give me a text and I pick the sentences that fit your question.`,
  `%${engine}, so I know only what stands in this conversation. Give me a text to look in.`
]
const greetings = [
  `Hello! ${engine}: give me a text and ask about it, and I answer with its own sentences.`,
  `Hi! ${engine}. I answer from text that you paste here.`,
  `Good to meet you. ${engine}, and I answer with sentences from the text you give me.`
]
const thanks = ["You are welcome.", "Gladly.", "You are welcome. Ask on if you like."]
const leads = ["", "From the text: ", "The conversation says: ", "In the text's own words: ", "Here is what I found: "]
const nothingFits = [
  "No sentence of the text has a word of the question in it. What the text is about: ",
  "The text does not speak of that. It says: ",
  "I found no sentence that fits the question; these are the central ones: "
]
/** How much the later wordings quote at most, in sentences. */
const mostPassages = 6
const resultLeads = ["", "The tools say: ", "What came back: "]

const greeting =
  /^(?:hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|hallo|guten (?:tag|morgen)|bonjour|salut|hola|ciao|olá|ahoj|cześć|привет|你好|こんにちは)(?=$|[\s,.!])/iu
const gratitude = /^(?:thanks|thank you|thx|cheers|merci|danke|gracias)\b/iu
/** An order to say just this. */
const echo =
  /^(?:please\s+)?(?:(?:say|repeat|echo)(?:\s+(?:after me|exactly|only|just|the words?))?|(?:reply|respond|answer) with(?:\s+(?:exactly|only|just|the words?))+)\s*:?\s+["“'‘]?(?!(?:what|who|how|why|where|when|which|whether|if|some\w+|any\w+|a|an)\b)([^\n]+?)["”'’]?$/iu
const firstPerson = /\b(?:I|[Mm](?:y|e|ine)|[Ww]e|[Oo]ur)\b/u
const count =
  /\b(one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})\s+(?:\w+\s+)?(?:sentences?|(?:bullet )?points?|bullets?|items?)\b/iu
const numerals = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
const list = /\b(?:list|bullets?|bullet points)\b/iu

/**
 * The answer in one of endlessly many wordings: number 0 is the plain one, the others select or introduce otherwise.
 * `words` sets the length instead, in words: the text goes on with further sentences, and from the start again.
 */
export const textAnswer = (material: Material, variant: number, words: number | undefined): string => {
  const body = answerBody(material, variant)
  const text = material.unread === "" ? body : `${material.unread} ${body}`
  return words === undefined ? text : toLength(text, words, material)
}

/** Tells texts that are alike apart by their number. */
export const differing = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.map((text, i) => texts.indexOf(text) < i ? `${text} (${i + 1})` : text)

const pick = (wordings: ReadonlyArray<string>, variant: number): string => wordings[variant % wordings.length] as string

const answerBody = (material: Material, variant: number): string => {
  const { said } = material
  if (material.results.length > 0) return `${pick(resultLeads, variant)}${tellResults(material)}`
  const order = said.length <= 500 ? echo.exec(said)?.[1] : undefined
  if (order !== undefined) return order
  if (material.ranking.length > 0) return tellPassages(material, variant)
  if (said.length <= 60 && greeting.test(said)) return pick(greetings, variant)
  if (said.length <= 60 && gratitude.test(said)) return pick(thanks, variant)
  const verb = said.endsWith("?") ? "asked" : "wrote"
  return pick(aboutItself, variant).replace("%", () => said === "" ? "" : `You ${verb}: “${clip(said, 200)}” `)
}

const tellResults = ({ results }: Material): string =>
  results.map(({ text, tool }) => text === "" ? `${tool} gave an empty result.` : `${tool}: ${finish(text)}`)
    .join("\n")

const finish = (text: string): string => /[\p{L}\p{N}]$/u.test(text) ? `${text}.` : text

const tellPassages = (material: Material, variant: number): string => {
  const { basis, question, ranking } = material
  const plain = askedCount(question) ?? 3
  // The first wordings differ in how they begin, the later ones also in how much they quote.
  const round = Math.floor(variant / leads.length)
  const limit = round === 0 ? plain : 1 + (plain + round) % Math.min(ranking.length, mostPassages)
  const strict = basis === "question" && round === 0
  const chosen = choose(ranking, limit, strict ? 0.6 : 0)
  const bullets = list.test(question)
  const begin = pick(basis === "nothing fits" ? nothingFits : leads, variant)
  if (bullets) {
    return `${begin === "" ? "" : `${begin.trim()}\n`}${chosen.map((passage) => `- ${quote(passage)}`).join("\n")}`
  }
  return `${begin}${chosen.map(quote).join(" ")}`
}

/** What the user said of themselves is theirs to say. */
const quote = ({ origin, text }: Passage): string =>
  origin === "user" && firstPerson.test(text) ? `You wrote: “${text}”` : text

const askedCount = (question: string): number | undefined => {
  const numeral = count.exec(question)?.[1]?.toLowerCase()
  if (numeral === undefined) return undefined
  const number = numerals.includes(numeral) ? numerals.indexOf(numeral) : Number(numeral)
  return Math.max(1, number)
}

const toLength = (text: string, words: number, { ranking }: Material): string => {
  const more = ranking.slice(0, 200).flatMap(({ passage }) => passage.text.split(" "))
  const all = text.split(" ")
  const round = more.length === 0 ? [...all] : more
  while (all.length < words) all.push(...round)
  return all.slice(0, words).join(" ")
}
