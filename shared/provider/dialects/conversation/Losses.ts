/**
 * Keeps account of what of a request gets lost on its way into another dialect. Nothing may get lost in silence: where
 * the answer would mean something else without it, the request is refused by the field's name; where only a hint gets
 * lost, the client is warned.
 */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Setting, SettingNames } from "./Conversation.ts"

/**
 * What becomes of a field: `carried` whole, or into the fields below it; a lost `hint`; one whose loss would change the
 * `meaning` of the answer; or a `tool` of a provider's own, which is asked for by being there. A field that is not named is
 * a hint.
 */
export type Fate = "carried" | "hint" | "meaning" | "tool" | readonly [Fate] | { readonly [field: string]: Fate }

export const noSuchTool = "is a tool that the provider of this model does not have"

/** What a field of a client's choosing is shown as. */
const plain = /^[\w-]{1,64}$/

export class Losses {
  readonly #warnings = new Set<string>()
  readonly #mode: "strict" | "ordinary" | "lenient"
  readonly #settings: SettingNames
  #refusal: InvalidRequest | undefined

  /** `strict`: every loss is refused. `lenient`: none is. `settings` are named as the client names them. */
  constructor(mode: "strict" | "ordinary" | "lenient", settings: SettingNames) {
    this.#mode = mode
    this.#settings = settings
  }

  /** Fails with the first loss so far that is refused. */
  readonly verdict: Effect.Effect<void, InvalidRequest> = Effect.suspend(() =>
    this.#refusal === undefined ? Effect.void : Effect.fail(this.#refusal)
  )

  /** Paths with what became of each, in plain ASCII: they become a header. Each stands there once. */
  get warnings(): ReadonlyArray<string> {
    return [...this.#warnings]
  }

  /** A hint gets lost. `what` tells what became of the field, as in `was lowered to 1`. */
  warn(path: string, what = "is not carried over"): void {
    if (this.#mode === "strict") this.#refuse(path, what)
    else this.#warnings.add(`${path} ${what}`)
  }

  /** The answer would not be what was asked for. */
  refuse(path: string, what = "cannot be carried over to the provider of this model"): void {
    if (this.#mode === "lenient") this.#warnings.add(`${path} is not carried over`)
    else this.#refuse(path, what)
  }

  warnOf(setting: Setting, what?: string): void {
    this.warn(this.#settings[setting] ?? setting, what)
  }

  refuseOf(setting: Setting, what?: string): void {
    this.refuse(this.#settings[setting] ?? setting, what)
  }

  /** Finds the fields of a request that do not even reach the canonical conversation. */
  note(request: unknown, fates: Fate, path = ""): void {
    if (fates === "carried" || request === undefined || request === null || request === false) return
    if (fates === "tool") return this.refuse(path, noSuchTool)
    if (isEmpty(request)) return
    if (fates === "hint") return this.warn(path)
    if (fates === "meaning") return this.refuse(path)
    if (isList(fates)) {
      if (Array.isArray(request)) request.forEach((element, index) => this.note(element, fates[0], `${path}[${index}]`))
      return
    }
    // a text, say, in the place of parts
    if (typeof request !== "object" || request === null || Array.isArray(request)) return
    for (const [key, value] of Object.entries(request)) {
      const name = plain.test(key) ? key : "(a field)"
      this.note(
        value,
        Object.hasOwn(fates, key) ? fates[key] ?? "hint" : "hint",
        path === "" ? name : `${path}.${name}`
      )
    }
  }

  #refuse(path: string, what: string): void {
    this.#refusal ??= InvalidRequest.at(path, what, "not_translatable")
  }
}

const isList = (fates: Fate): fates is readonly [Fate] => Array.isArray(fates)

/** Says nothing that leaving it out would not say. */
const isEmpty = (value: unknown): boolean =>
  value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0)
