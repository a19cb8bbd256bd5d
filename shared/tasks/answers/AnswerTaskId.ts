/** Ids of tasks whose results are answers: `resp_` or `task_`, and 32 hexadecimal digits that sort by creation time. */
import { randomBytes } from "node:crypto"

const pattern = /^(?:resp|task)_[0-9a-f]{32}$/

/** The digits of a new id. `now`: epoch milliseconds. */
export const newSuffix = (now: number): string => now.toString(16).padStart(12, "0") + randomBytes(10).toString("hex")

/** Checks text from a client before it becomes part of a key. */
export const isAnswerTaskId = (id: string): boolean => pattern.test(id)

const anyPattern = /^[a-z]+_[0-9a-f]{32}$/

/** Whether the text has the form of a task's id, of any kind. */
export const isTaskId = (id: string): boolean => anyPattern.test(id)

/**
 * An id that reveals only the time of another one, for a page that begins after a task that the reader may not see. That page may
 * repeat tasks of the same millisecond.
 */
export const sameTime = (id: string): string => id.slice(0, -20) + "f".repeat(20)

/** The part of an id, or of a record's key, that sorts tasks by time. */
export const suffixOf = (idOrKey: string): string => idOrKey.slice(-32)
