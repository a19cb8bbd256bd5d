/** The headers by which clients name the session that a chat request belongs to. */

/** In lower case, the first first. The gateway keeps a session's requests at the target whose cache holds their prompt. */
export const sessionHeaders = ["x-session-id", "session_id", "x-claude-code-session-id"] as const
