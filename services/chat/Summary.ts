/** Summarises a whole conversation in its own sentences, for whoever goes on with it. */
import { Effect } from "effect"
import type { Origin, Passage, Ranking, Source } from "./Extract.ts"
import { choose, ends, rankByCentrality, rankByQuestion, readPassages } from "./Extract.ts"
import { topicWords } from "./Sentences.ts"

/** Characters of the conversation that are read: more than any model would be given at once. */
const readCharacters = 1_000_000

/** Characters that are read of the instructions. */
const instructionCharacters = 20_000

/** One sentence in so many is kept, but no fewer and no more than this. */
const sentencesPerKept = 4
const fewest = 5
const most = 60

/** The user's own messages are kept beside the summary. Assistants are marked down by the ranking, for they repeat much. */
const weights: { readonly [O in Origin]: number } = { instructions: 1, user: 0.4, assistant: 2, tool: 1 }

/** What the instructions ask for goes before what the conversation keeps coming back to. */
const weightOfInstructions = 3

const heading = "Summary of the conversation up to here:"

/**
 * The sentences that stand for the conversation, in its order, one to a line below a heading. `instructions` say in any
 * words what to pay attention to; they may be empty. Lets other work run while it reads.
 */
export const summarise = Effect.fnUntraced(function*(sources: ReadonlyArray<Source>, instructions: string) {
  const passages = (yield* readPassages(sources, readCharacters)).filter(({ text }) => text !== heading)
  const limit = Math.min(most, Math.max(fewest, Math.ceil(passages.length / sentencesPerKept)))
  const chosen = choose(rank(passages, topicWords(ends(instructions, instructionCharacters))), limit, 0)
  return [heading, ...chosen.map(({ text }) => `- ${text}`)].join("\n")
})

const rank = (passages: ReadonlyArray<Passage>, topic: ReadonlyArray<string>): Ranking => {
  const central = shares(rankByCentrality(passages))
  const asked = shares(rankByQuestion(passages, topic))
  return passages
    .map((passage) => ({
      passage,
      score: weights[passage.origin] * (central.get(passage) ?? 0) + weightOfInstructions * (asked.get(passage) ?? 0)
    }))
    .toSorted((a, b) => b.score - a.score || a.passage.order - b.passage.order)
}

/** The scores of a ranking as shares of its best one. */
const shares = (ranking: Ranking): ReadonlyMap<Passage, number> => {
  const best = ranking[0]?.score ?? 1
  return new Map(ranking.map(({ passage, score }) => [passage, score / best]))
}
