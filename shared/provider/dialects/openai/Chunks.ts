/** Frames of streamed answers in the OpenAI dialect. */
import type { Usage } from "../../../contract/Usage.ts"
import type { AnswerIdentity } from "../conversation/Dialect.ts"
import { toTokenUsage } from "./OpenAiUsage.ts"

export class Chunks {
  readonly #head: object
  readonly #includeUsage: boolean

  constructor(head: { readonly id: string; readonly object: string }, identity: AnswerIdentity, includeUsage: boolean) {
    const { created, fingerprint, model } = identity
    this.#head = { ...head, created, model, system_fingerprint: fingerprint }
    this.#includeUsage = includeUsage
  }

  choice(choice: object): string {
    return this.#frame({ choices: [choice], ...(this.#includeUsage ? { usage: null } : {}) })
  }

  /** Empty unless the client asked for usage. */
  usage(usage: Usage): string {
    return this.#includeUsage ? this.#frame({ choices: [], usage: toTokenUsage(usage) }) : ""
  }

  #frame(content: object): string {
    return `data: ${JSON.stringify({ ...this.#head, ...content })}\n\n`
  }
}
