/** The calls that wait for a target, in lines that take turns: one for each owner, and one for each owner's large requests. */

/** A call that waits for its turn. */
export interface WaitingCall {
  readonly owner: string
  /** Whether it belongs to its owner's large requests, so that it delays no other ones. */
  readonly isLarge: boolean
}

export class WaitingCalls<W extends WaitingCall> {
  /** The line whose turn is next comes first. */
  readonly #lines = new Map<string, Set<W>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get lines(): number {
    return this.#lines.size
  }

  /** How many calls wait in the line of such a call. */
  lengthOf(call: WaitingCall): number {
    return this.#lines.get(lineOf(call))?.size ?? 0
  }

  add(call: W): void {
    const key = lineOf(call)
    const line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, new Set([call]))
    else line.add(call)
    this.#size++
  }

  /** A call waits no longer. */
  delete(call: W): void {
    const key = lineOf(call)
    const line = this.#lines.get(key)
    if (line?.delete(call) !== true) return
    this.#size--
    if (line.size === 0) this.#lines.delete(key)
  }

  /** The first call of each line, in the order of turns. */
  *firsts(): Generator<W> {
    for (const [first] of this.#lines.values()) if (first !== undefined) yield first
  }

  /** Takes a call, whose line then waits for its next turn. */
  take(call: W): void {
    const key = lineOf(call)
    const line = this.#lines.get(key)
    this.delete(call)
    if (line === undefined || line.size === 0) return
    this.#lines.delete(key)
    this.#lines.set(key, line)
  }
}

const lineOf = ({ isLarge, owner }: WaitingCall): string => `${isLarge ? "large" : "any"} ${owner}`
