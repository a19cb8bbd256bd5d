/** Facts about the models of well-known vendors, from a table that `npm run known-models` updates. */
import type { Facts } from "./Facts.ts"
import table from "./known-models.json" with { type: "json" }

const known = new Map(Object.entries(table.models as Readonly<Record<string, Facts>>))

/** What providers add to the vendor's name of a model: a path, Bedrock's vendor and version, a release date. */
const additions = [/^.*\//, /^(?:[a-z]+\.)?anthropic\./, /-v\d+(?::\d+)?$/, /[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$/]

/** The facts about a model, by its name at a provider; `undefined` if the table does not have it. */
export const knownFacts = (name: string): Facts | undefined => {
  let bare = name
  for (const addition of additions) {
    const found = known.get(bare)
    if (found !== undefined) return found
    bare = bare.replace(addition, "")
  }
  return known.get(bare)
}
