/** Ids of tasks whose results are answers: `resp_` or `task_`, and 32 hexadecimal digits in the order of their times. */
import { randomBytes } from "node:crypto"

const pattern = /^(?:resp|task)_[0-9a-f]{32}$/

/** `now`: in milliseconds. */
export const newSuffix = (now: number): string => now.toString(16).padStart(12, "0") + randomBytes(10).toString("hex")

/** No other text from a client may become part of a key. */
export const isAnswerTaskId = (id: string): boolean => pattern.test(id)

const anyPattern = /^[a-z]+_[0-9a-f]{32}$/

/** Whether it may be the id of a task of any kind. */
export const isTaskId = (id: string): boolean => anyPattern.test(id)

/**
 * An id with the time of another one and nothing else of it, for pages that begin after a task which may not be shown. Such a page may
 * begin with tasks of the same millisecond that were shown before.
 */
export const sameTime = (id: string): string => id.slice(0, -20) + "f".repeat(20)

/** The end of an id or of the key of its record, which orders tasks by their times. */
export const suffixOf = (idOrKey: string): string => idOrKey.slice(-32)
