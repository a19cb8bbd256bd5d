/** Gives the texts and files of a conversation the one form that every provider reads. */
import { type ContentPart, isMedia, type Turn } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

/** Other than the standard alphabet without white space: the URL-safe alphabet, lines as in MIME, or a text without its padding. */
const isOther = (data: string): boolean => data.length % 4 !== 0 || /[-_\s]/.test(data)

/** Base64 in the standard alphabet (RFC 4648, section 4) with padding. Google's clients use the URL-safe one. */
export const standardBase64 = (data: string): string => {
  if (!isOther(data)) return data
  const bare = data.replaceAll(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, "=")
}

/** Half of a surrogate pair, which cutting a text leaves, makes JSON that providers reject. */
const wellFormed = (text: string, path: string | undefined, losses: Losses): string => {
  if (text.isWellFormed()) return text
  losses.warn(path ?? "", "had half a character, which was replaced")
  return text.toWellFormed()
}

const partWellFormed = (part: ContentPart, losses: Losses): ContentPart => {
  if (part.type === "text" || part.type === "reasoning") {
    return { ...part, text: wellFormed(part.text, part.path, losses) }
  }
  const { media } = part
  return isMedia(part) && media.type === "base64"
    ? { ...part, media: { ...media, data: standardBase64(media.data) } }
    : part
}

export const turnWellFormed = (turn: Turn, losses: Losses): Turn => ({
  ...turn,
  content: turn.content.map((part) => partWellFormed(part, losses)),
  toolCalls: turn.toolCalls.map((call) => ({ ...call, arguments: wellFormed(call.arguments, call.path, losses) }))
})
