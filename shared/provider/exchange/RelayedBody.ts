/** Edits members of a relayed body, and removes marks and foreign reasoning from its history. Leaves every other byte unchanged. */
import type { Member } from "../../bounds/JsonMembers.ts"
import * as Signature from "../dialects/conversation/Signature.ts"
import * as SignatureMarks from "../dialects/conversation/SignatureMarks.ts"
import * as JsonText from "../json/JsonText.ts"
import type { Call } from "../call/Protocol.ts"

export class RelayedBody {
  readonly #call: Call
  readonly #recipient: Signature.Recipient | undefined
  readonly #changes = new Map<string, unknown>()
  #members: ReadonlyArray<Member> | undefined

  constructor(call: Call, recipient?: Signature.Recipient) {
    this.#call = call
    this.#recipient = recipient
  }

  valueOf(name: string): unknown {
    return JsonText.valueOf(this.#call.body, this.#read(), name)
  }

  /** The value, as edited so far, with all digits of its numbers (see `ExactJson`). */
  exactValueOf(name: string): unknown {
    return this.#changes.has(name)
      ? this.#changes.get(name)
      : JsonText.exactValueOf(this.#call.body, this.#read(), name)
  }

  has(name: string): boolean {
    return this.#read().some((member) => member.name === name)
  }

  /** Whether the body has one of these bytes: cheaper than a look at its members. */
  mentions(texts: ReadonlyArray<string>): boolean {
    const { body } = this.#call
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    return texts.some((text) => bytes.includes(text))
  }

  /** Whether the body asks for a stream. */
  get streams(): boolean {
    return this.#call.isPlain !== true && this.valueOf("stream") === true
  }

  set(name: string, value: unknown): void {
    this.#changes.set(name, value)
  }

  /** Sets the model's name at the provider. If the client's path names the model, the body may name none, or another one. */
  setModel(): void {
    const { endpoint, isPlain, model } = this.#call
    const name = isPlain === true ? model : this.valueOf("model")
    if (name !== endpoint.model) this.set("model", endpoint.model)
  }

  /** The edited bytes, without the reasoning of other providers in the field `history`, which this provider would reject. */
  toBytes(history?: string, origin: Signature.Origin = "openai"): Uint8Array {
    const { body } = this.#call
    const recipient = history === undefined ? undefined : this.#recipient
    const isOwn = recipient !== undefined && SignatureMarks.holdsOnlyOf(body, recipient.account)
    if (history !== undefined && recipient !== undefined && !isOwn) {
      this.set(history, Signature.toRelayed(this.exactValueOf(history), history, origin, recipient))
    }
    const changed = this.#changes.size === 0 ? body : JsonText.setMembers(body, this.#read(), this.#changes)
    return isOwn ? SignatureMarks.withoutMarks(changed) : changed
  }

  /** The members of the body. Read only when needed: most bodies pass unchanged, and large ones take long to read. */
  #read(): ReadonlyArray<Member> {
    return this.#members ??= JsonText.members(this.#call.body) ?? []
  }
}
