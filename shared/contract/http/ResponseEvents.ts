/** The events of a streamed answer in the responses format that hold the response itself. */

/** The types of the events that begin a streamed answer, each with the response so far. */
export const firstEvents: ReadonlySet<unknown> = new Set([
  "response.created",
  "response.queued",
  "response.in_progress"
])

/** The types of the events that end an answer which can be continued, each with the whole response. */
export const lastEvents: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete"])
