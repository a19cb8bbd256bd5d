/** Puts pictures and files in the place of their addresses, for providers that do not fetch these. */
import { Effect } from "effect"
import { InvalidRequest } from "../../contract/JobError.ts"
import type { GuardedFetch } from "../GuardedFetch.ts"
import type { ContentPart, Conversation, MediaPart, Turn } from "./Conversation.ts"
import type { ProviderDialect } from "./Dialect.ts"

/** How many are fetched at once for one request. */
const atOnce = 4

type NeedsInline = ProviderDialect<never>["needsInline"]

const isNeeded = (part: ContentPart, needsInline: NeedsInline): part is MediaPart =>
  (part.type === "image" || part.type === "file") && part.media.type === "url" && needsInline(part.media.url, part)

/** Fails with the field whose address leads nowhere. */
export const inline = (
  conversation: Conversation,
  needsInline: NeedsInline,
  guard: GuardedFetch["Service"]
): Effect.Effect<Conversation, InvalidRequest> => {
  const isAnyNeeded = conversation.turns.some(({ content }) => content.some((part) => isNeeded(part, needsInline)))
  if (!isAnyNeeded) return Effect.succeed(conversation)
  return Effect.map(
    Effect.forEach(conversation.turns, (turn) =>
      Effect.map(
        Effect.forEach(
          turn.content,
          (part): Effect.Effect<ContentPart, InvalidRequest> =>
            isNeeded(part, needsInline) ? fetched(part, guard) : Effect.succeed(part),
          { concurrency: atOnce }
        ),
        (content): Turn => ({ ...turn, content })
      )),
    (turns) => ({ ...conversation, turns })
  )
}

const fetched = (part: MediaPart, guard: GuardedFetch["Service"]): Effect.Effect<MediaPart, InvalidRequest> =>
  Effect.mapBoth(guard.fetch(part.media.type === "url" ? part.media.url : ""), {
    onSuccess: ({ bytes, mediaType }): MediaPart => ({
      ...part,
      mediaType: mediaType.split(";")[0]?.trim().toLowerCase() || part.mediaType,
      media: { type: "base64", data: Buffer.from(bytes).toString("base64") }
    }),
    onFailure: (refused) => {
      const param = part.path ?? null
      return new InvalidRequest({ message: `${param ?? "a file"}: ${refused.message}`, param, code: "invalid_url" })
    }
  })
