/** The states of a batch's lines, as far as the holder knows: one byte for each line. */
const states = ["unknown", "submitted", "taken", "begun", "completed", "failed", "stopped"] as const
export type LineState = typeof states[number]

export class LineTable {
  readonly #lines: Uint8Array
  readonly #counts: Record<LineState, number>

  constructor(total: number) {
    this.#lines = new Uint8Array(total)
    this.#counts = { unknown: total, submitted: 0, taken: 0, begun: 0, completed: 0, failed: 0, stopped: 0 }
  }

  stateOf(line: number): LineState {
    return states[this.#lines[line] ?? 0] ?? "unknown"
  }

  count(state: LineState): number {
    return this.#counts[state]
  }

  /** Sets a line's state. Ignores a return to an earlier state, because the log may repeat earlier writes. */
  set(line: number, state: LineState): void {
    if (line >= this.#lines.length) return
    const [before, after] = [this.#lines[line] ?? 0, states.indexOf(state)]
    if (after <= before) return
    this.#lines[line] = after
    this.#counts[this.stateOf(line)]++
    this.#counts[states[before] ?? "unknown"]--
  }

  /** The lines in one of these states. */
  *linesIn(wanted: ReadonlyArray<LineState>): Generator<number> {
    for (let line = 0; line < this.#lines.length; line++) {
      if (wanted.includes(this.stateOf(line))) yield line
    }
  }

  /** The number of lines that have a result. */
  get ended(): number {
    return this.#counts.completed + this.#counts.failed
  }

  /** The number of lines that wait for a worker or have one. */
  get open(): number {
    return this.#counts.submitted + this.#counts.taken + this.#counts.begun
  }

  get isComplete(): boolean {
    return this.ended === this.#lines.length
  }
}
