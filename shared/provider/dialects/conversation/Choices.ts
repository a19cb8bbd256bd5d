/** The choices of one answer by index, each made when it first occurs. */
import type { FinishReason } from "./ModelEvent.ts"

export class Choices<Choice extends { readonly finish: FinishReason | undefined }> extends Map<number, Choice> {
  readonly #make: (index: number) => Choice

  constructor(make: (index: number) => Choice) {
    super()
    this.#make = make
  }

  of(index: number): Choice {
    let choice = this.get(index)
    if (choice === undefined) this.set(index, choice = this.#make(index))
    return choice
  }

  /** Whether there is a choice, and each has a finish reason. */
  get areFinished(): boolean {
    return this.size > 0 && [...this.values()].every(({ finish }) => finish !== undefined)
  }
}
