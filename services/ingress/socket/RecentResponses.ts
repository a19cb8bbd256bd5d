/**
 * Keeps the latest response of each lane of a WebSocket with the conversation before it, so that a client can continue from a
 * response that is not stored. Takes memory from the budget for bodies, also for the inputs of running answers: without room, a
 * response is forgotten, and its client sends the whole input again.
 */
import type { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

interface RecentResponse {
  readonly id: string
  /** The response that the items below follow, if it was not one of these. */
  readonly previous: unknown
  /** JSON: the items of its input and of its output, joined by commas. Their memory is reserved. */
  readonly items: Uint8Array
}

/** What is known of a request whose body no longer refers to a response of the socket. */
export interface WholeBody {
  readonly previous: unknown
  /** JSON: the items of the whole input, joined by commas; `undefined` if they are not in memory any more. */
  items: Uint8Array | undefined
  /** The memory that the items keep, in bytes: that of the whole body, of which they are a part. */
  readonly bytes: number
  /** The response that the client continues from. */
  readonly named: unknown
  /** The lane whose response it continues. */
  readonly continues: string | undefined
}

interface Expanded {
  /** The request's body. */
  readonly json: Uint8Array
  readonly whole: WholeBody
}

type Body = Readonly<Record<string, unknown>>

/** The items of an input, as JSON joined by commas; `undefined` if it has no such form. */
const itemsOf = (input: unknown): Uint8Array | undefined => {
  if (input === undefined || input === null) return nothing
  if (typeof input === "string") return Buffer.from(JSON.stringify({ role: "user", content: input }))
  return Array.isArray(input) ? bytesOf(input) : undefined
}

const bytesOf = (items: ReadonlyArray<unknown>): Uint8Array => Buffer.from(JSON.stringify(items).slice(1, -1))

const nothing = new Uint8Array(0)
const comma = Buffer.from(",")
const end = Buffer.from("]}")

const joined = (one: Uint8Array, other: Uint8Array): ReadonlyArray<Uint8Array> =>
  one.length === 0 || other.length === 0 ? [one, other] : [one, comma, other]

export class RecentResponses {
  readonly #budget: TenantBudget
  readonly #tenant: string
  readonly #byLane = new Map<string, RecentResponse>()
  /** Those for which `hold` has reserved memory. */
  readonly #held = new Set<WholeBody>()

  constructor(budget: TenantBudget, tenant: string) {
    this.#budget = budget
    this.#tenant = tenant
  }

  /** Prepends the conversation up to the previous response to the input. */
  expand({ input, previous_response_id: previous, ...settings }: Body): Expanded {
    const [lane, found] = [...this.#byLane].find(([, { id }]) => id === previous) ?? []
    const own = itemsOf(input)
    const body = { ...settings, previous_response_id: found === undefined ? previous : found.previous }
    const about = { previous: body.previous_response_id, named: previous, continues: lane }
    // the operation's schema names the mistake
    if (own === undefined) {
      return { json: Buffer.from(JSON.stringify({ ...body, input })), whole: { ...about, items: nothing, bytes: 0 } }
    }
    const start = Buffer.from(`${JSON.stringify(body).slice(0, -1)},"input":[`)
    const json = Buffer.concat([start, ...joined(found?.items ?? nothing, own), end])
    const items = json.subarray(start.length, json.length - end.length)
    return { json, whole: { ...about, items, bytes: json.length } }
  }

  /**
   * Reserves memory for the items of a request that is being answered, until they are released or kept. Forgets them if there is no
   * room for both them and the copy of the body that the operation makes. The response is then not kept.
   */
  hold(whole: WholeBody): void {
    const { bytes } = whole
    if (this.#budget.reserve(this.#tenant, 2 * bytes)) {
      this.#budget.release(this.#tenant, bytes)
      this.#held.add(whole)
    } else whole.items = undefined
  }

  /** Forgets the items and returns their memory. */
  release(whole: WholeBody): void {
    whole.items = undefined
    if (this.#held.delete(whole)) this.#budget.release(this.#tenant, whole.bytes)
  }

  /** Keeps a lane's response in place of its previous one. */
  keep(lane: string, id: string, whole: WholeBody, output: ReadonlyArray<unknown>): void {
    const { items: input, previous } = whole
    this.release(whole)
    this.forget(lane)
    if (input === undefined) return
    // a copy: the input is a part of a body, which may have much else
    const items = Buffer.concat(joined(input, bytesOf(output)))
    if (this.#budget.reserve(this.#tenant, items.length)) this.#byLane.set(lane, { id, previous, items })
  }

  forget(lane: string): void {
    const found = this.#byLane.get(lane)
    if (found !== undefined) this.#budget.release(this.#tenant, found.items.length)
    this.#byLane.delete(lane)
  }

  /** Forgets all responses and requests. */
  clear(): void {
    for (const lane of [...this.#byLane.keys()]) this.forget(lane)
    for (const whole of [...this.#held]) this.release(whole)
  }
}
