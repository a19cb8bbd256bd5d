/** The protocols that the catalogue can name, and what makes the calls of each: one line per protocol. */
import { Effect } from "effect"
import type { Provider } from "../catalogue/Catalogue.ts"
import * as Local from "./Local.ts"
import * as OpenAi from "./openai/OpenAi.ts"
import type { Perform } from "./Protocol.ts"
import { Upstream } from "./Upstream.ts"

export const protocols = Effect.gen(function*() {
  const upstream = yield* Upstream
  const performs: Record<Provider["protocol"], Perform> = {
    openai: OpenAi.make(upstream),
    local: Local.make(yield* Local.LocalEngines)
  }
  return performs
})
