/** The gateway's own headers of chat requests. */

/**
 * Name the session that a request belongs to. In lower case, the first first. The gateway keeps a session's requests at the target
 * whose cache holds their prompt.
 */
export const sessionHeaders = ["x-session-id", "session_id", "x-claude-code-session-id"] as const

/** Its only value, `strict`, turns every loss of a translation into an error. */
export const translationHeader = "x-translation"

export const strictTranslation = "strict"
