/** Fits identifiers to the lengths that a provider's dialect allows. */
import { hash } from "node:crypto"

/** OpenAI's limits of `user`, `safety_identifier` and the ids of calls; other servers allow no less. */
export const openAiUser = 64
export const openAiCallId = 40
/** Anthropic's limit of `metadata.user_id`. */
export const anthropicUser = 256

/** The id, or if it is longer than `most` characters its hash of at most 43 characters: the same id always has the same hash. */
export const fitted = (id: string, most: number): string =>
  id.length <= most ? id : hash("sha256", id, "base64url").slice(0, most)

/** The id of a call as Anthropic accepts it: `^[a-zA-Z0-9_-]+$`. A hash keeps ids apart that differ only in other characters. */
export const fittedCallId = (id: string): string =>
  /^[\w-]+$/.test(id) ? id : `${id.replaceAll(/[^\w-]/g, "_")}_${hash("sha256", id, "hex").slice(0, 8)}`

/** The name of an answer's schema as OpenAI accepts it. */
export const fittedName = (name: string): string => name.replaceAll(/[^\w-]/g, "_").slice(0, 64)
