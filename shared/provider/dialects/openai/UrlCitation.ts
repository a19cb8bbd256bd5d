/** Citations in the form of OpenAI's annotations. */
import type { Citation } from "../conversation/ModelEvent.ts"
import * as Json from "../../json/Json.ts"

/** From OpenAI's form, with positions from `base` on; none for a file or a source without an address. */
export const fromUrlCitation = (annotation: unknown, base = 0): ReadonlyArray<Citation> => {
  const { end_index: end, start_index: start, title, url } = Json.fields(annotation)
  if (typeof url !== "string") return []
  const from = base + (Json.count(start) ?? 0)
  return [{
    url,
    title: Json.string(title) ?? "",
    start: from,
    end: Math.max(from, base + (Json.count(end) ?? 0)),
    quote: ""
  }]
}

/** OpenAI's form, with positions from `base` on. */
export const toUrlCitation = ({ end, start, title, url }: Citation, base = 0) => ({
  start_index: start - base,
  end_index: end - base,
  title,
  url
})
