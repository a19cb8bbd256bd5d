/** The names of the gateway's own headers in chat requests. */

/**
 * The headers that name the session of a request, in lower case; the first one present counts. The gateway sends a session's requests
 * to the target whose cache holds their prompt.
 */
export const sessionHeaders = ["x-session-id", "session_id", "x-claude-code-session-id"] as const

/** The header for translations between APIs. Its only value, `strict`, turns every loss in translation into an error. */
export const translationHeader = "x-translation"

export const strictTranslation = "strict"
