/**
 * Records the fields of a request that its translation loses. If a loss would change the meaning of the answer, the request is rejected
 * with the name of the field. A lost hint causes a warning.
 */
import { Effect } from "effect"
import { spellingsOf } from "../../../contract/http/FieldSpelling.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Setting, SettingNames } from "./Conversation.ts"

/**
 * The fate of a field. `carried`: the translation carries it over. `hint`: it is lost. `meaning`: its loss would change the
 * meaning of the answer. `tool`: it is a tool of the provider. Lists and objects name the fates of their elements and fields.
 * Unnamed fields are hints.
 */
export type Fate = "carried" | "hint" | "meaning" | "tool" | readonly [Fate] | { readonly [field: string]: Fate }

const fateOf = (fate: Fate) => (...names: ReadonlyArray<string>): { readonly [field: string]: Fate } =>
  Object.fromEntries(names.map((name) => [name, fate]))

export const carried = fateOf("carried")
export const meaning = fateOf("meaning")
export const tools = fateOf("tool")

/** The fates with each field also in snake_case, for dialects that accept both spellings. */
export const inBothSpellings = (fates: Fate): Fate => {
  if (typeof fates === "string") return fates
  if (isList(fates)) return [inBothSpellings(fates[0])]
  return Object.fromEntries(
    Object.entries(fates).flatMap(([name, fate]) => {
      const inner = inBothSpellings(fate)
      return spellingsOf(name).map((spelling) => [spelling, inner])
    })
  )
}

export const noSuchTool = "is a tool that the provider of this model does not have"
export const foreignReasoning = "comes from another provider"

/** The form of field names that are shown. Others are made up by the client. */
const plain = /^[\w-]{1,64}$/

type Mode = "strict" | "ordinary" | "lenient"

export class Losses {
  readonly #warnings = new Set<string>()
  readonly #mode: Mode
  readonly #settings: { [S in Setting]?: string }
  #refusal: InvalidRequest | undefined
  #prefix = ""

  /** `strict` refuses every loss, `lenient` none. `settings` are the client's names. */
  constructor(mode: Mode, settings: SettingNames) {
    this.#mode = mode
    this.#settings = { ...settings }
  }

  /** Fails with the first refused loss so far. */
  readonly failIfRefused: Effect.Effect<void, InvalidRequest> = Effect.suspend(() =>
    this.#refusal === undefined ? Effect.void : Effect.fail(this.#refusal)
  )

  /** The first refused loss so far. */
  get refusal(): InvalidRequest | undefined {
    return this.#refusal
  }

  /** Paths and what happened to them, without repetition, in ASCII: the value of a header. */
  get warnings(): ReadonlyArray<string> {
    return [...this.#warnings]
  }

  /** Puts all further paths below this one. */
  moveInto(path: string): void {
    this.#prefix = `${path}.`
  }

  /** Records a lost hint. `what`: what happened to the field, as in `was lowered to 1`. */
  warn(path: string, what = this.#lost): void {
    if (this.#mode === "strict") this.#refuse(path, what)
    else this.#warnings.add(`${this.#prefix}${path} ${what}`)
  }

  /** Records a loss that would change the meaning of the answer. */
  refuse(path: string, what = "cannot be carried over to the provider of this model"): void {
    if (this.#mode === "lenient") this.#warnings.add(`${this.#prefix}${path} ${this.#lost}`)
    else this.#refuse(path, what)
  }

  /** Records a lost tool, which no answer can replace. */
  refuseTool(path: string): void {
    this.refuseAlways(path, noSuchTool)
  }

  /** Records a loss without which any answer would be wrong: even lenient engines refuse it. `details`: for clients that know them. */
  refuseAlways(path: string, what: string, details?: InvalidRequest["details"]): void {
    this.#refuse(path, what, details)
  }

  /** Notes that this request sets the setting in another field than usual. */
  rename(setting: Setting, path: string): void {
    this.#settings[setting] = path
  }

  /** The client's name of the setting. */
  nameOf(setting: Setting): string {
    return this.#settings[setting] ?? setting
  }

  warnOf(setting: Setting, what?: string): void {
    this.warn(this.nameOf(setting), what)
  }

  refuseOf(setting: Setting, what?: string): void {
    this.refuse(this.nameOf(setting), what)
  }

  /** Records the fields of a request that do not reach the canonical conversation. */
  recordUnmapped(request: unknown, fates: Fate, path = ""): void {
    if (fates === "carried" || request === undefined || request === null || request === false) return
    if (fates === "tool") return this.refuseTool(path)
    if (isEmpty(request)) return
    if (fates === "hint") return this.warn(path)
    if (fates === "meaning") return this.refuse(path)
    if (isList(fates)) {
      if (Array.isArray(request)) {
        request.forEach((element, index) => this.recordUnmapped(element, fates[0], `${path}[${index}]`))
      }
      return
    }
    if (typeof request !== "object" || request === null || Array.isArray(request)) return
    for (const [key, value] of Object.entries(request)) {
      const name = plain.test(key) ? key : "(a field)"
      const fate = Object.hasOwn(fates, key) ? fates[key] : undefined
      this.recordUnmapped(value, fate ?? "hint", path === "" ? name : `${path}.${name}`)
    }
  }

  get #lost(): string {
    return this.#mode === "lenient" ? "has no effect" : "is not carried over"
  }

  #refuse(path: string, what: string, details?: InvalidRequest["details"]): void {
    if (this.#refusal !== undefined) return
    const refusal = InvalidRequest.at(`${this.#prefix}${path}`, what, "not_translatable")
    this.#refusal = details === undefined
      ? refusal
      : new InvalidRequest({ ...refusal, message: refusal.message, details })
  }
}

/** The fields of a request that are lost, if none of them is refused. */
export const lostIn = (request: unknown, fates: Fate, path = ""): ReadonlyArray<string> => {
  const losses = new Losses("lenient", {})
  losses.recordUnmapped(request, fates, path)
  return losses.warnings
}

/** The files of a form that are not among the known fields: no provider gets them. */
export const lostFiles = (form: FormData, known: ReadonlySet<string>): ReadonlyArray<string> => {
  // parts of a list are named `name[]`
  const files = [...form].flatMap(([name, value]) =>
    typeof value === "string" ? [] : [[name.replace(/\[.*$/s, ""), "file"]]
  )
  return lostIn(Object.fromEntries(files), carried(...known))
}

const isList = (fates: Fate): fates is readonly [Fate] => Array.isArray(fates)

/** Whether a value means the same as an absent field. */
const isEmpty = (value: unknown): boolean =>
  value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0)
