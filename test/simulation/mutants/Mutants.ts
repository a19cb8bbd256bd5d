/** Faults put into the gateway's code, to show that the simulation can fail: those of the past by hand, others mechanically. */
import type { Needs } from "./Needs.ts"

export interface Mutant {
  readonly name: string
  /** The path from the project's folder. */
  readonly file: string
  /** The scenarios that may show it; absent if most of them do. */
  readonly needs?: Needs | undefined
  /** Why no simulation can find it. */
  readonly excuse?: string | undefined
}

/** Replaces one text of a file. */
export interface Patch extends Mutant {
  readonly from: string
  readonly to: string
}

/** Changes one line of a file. The file contains all of its changes, and a process switches one on by its number. */
export interface Switch extends Mutant {
  /** The number of the change, from 1. */
  readonly number: number
}
