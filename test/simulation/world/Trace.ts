/** The trace of a simulation: one line per event, readable as a story and comparable as a hash. */
import { createHash } from "node:crypto"

export interface Line {
  readonly at: number
  readonly who: string
  readonly what: string
}

export class Trace {
  readonly #now: () => number
  readonly lines: Array<Line> = []

  constructor(now: () => number) {
    this.#now = now
  }

  tell(who: string, what: string): void {
    this.lines.push({ at: this.#now(), who, what })
  }

  get hash(): string {
    const hash = createHash("sha256")
    for (const { at, what, who } of this.lines) hash.update(`${at.toFixed(3)} ${who} ${what}\n`)
    return hash.digest("hex").slice(0, 16)
  }

  /** The lines that contain any of these words, or all lines without words. */
  story(...words: ReadonlyArray<string>): string {
    const told = words.length === 0
      ? this.lines
      : this.lines.filter(({ what, who }) => words.some((word) => what.includes(word) || who.includes(word)))
    return told.map(({ at, what, who }) => `${at.toFixed(1).padStart(9)} ms  ${who.padEnd(10)} ${what}`).join("\n")
  }
}
