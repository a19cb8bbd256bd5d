/**
 * Keeps the latest response of each lane of a WebSocket with the conversation before it, so that a client can continue from a
 * response that is not stored. Takes memory from the budget for bodies: without room, a response is forgotten, and its client sends
 * the whole input again.
 */
import type { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

interface RecentResponse {
  readonly id: string
  /** The response that the items below follow, if it was not one of these. */
  readonly previous: unknown
  /** JSON: the items of its input and of its output, joined by commas. */
  readonly items: string
  /** The memory reserved for it. */
  readonly bytes: number
}

/** A request's body that no longer refers to a response of the socket. */
export interface WholeBody {
  readonly json: string
  readonly previous: unknown
  readonly items: string
  /** The response that the client continues from. */
  readonly named: unknown
  /** The lane whose response it continues. */
  readonly continues: string | undefined
}

type Body = Readonly<Record<string, unknown>>

/** The items of an input, as JSON joined by commas; `undefined` if it has no such form. */
const itemsOf = (input: unknown): string | undefined => {
  if (input === undefined || input === null) return ""
  if (typeof input === "string") return JSON.stringify({ role: "user", content: input })
  return Array.isArray(input) ? textOf(input) : undefined
}

const textOf = (items: ReadonlyArray<unknown>): string => JSON.stringify(items).slice(1, -1)

const join = (one: string, other: string): string => one === "" || other === "" ? one + other : `${one},${other}`

export class RecentResponses {
  readonly #budget: TenantBudget
  readonly #tenant: string
  readonly #byLane = new Map<string, RecentResponse>()

  constructor(budget: TenantBudget, tenant: string) {
    this.#budget = budget
    this.#tenant = tenant
  }

  /** Prepends the conversation up to the previous response to the input. */
  expand({ input, previous_response_id: previous, ...settings }: Body): WholeBody {
    const [lane, found] = [...this.#byLane].find(([, { id }]) => id === previous) ?? []
    const own = itemsOf(input)
    const body = { ...settings, previous_response_id: found === undefined ? previous : found.previous }
    // the operation's schema names the mistake
    if (own === undefined) {
      return { json: JSON.stringify({ ...body, input }), previous, items: "", named: previous, continues: lane }
    }
    const items = join(found?.items ?? "", own)
    const json = `${JSON.stringify(body).slice(0, -1)},"input":[${items}]}`
    return { json, previous: body.previous_response_id, items, named: previous, continues: lane }
  }

  /** Keeps a lane's response in place of its previous one. */
  keep(lane: string, id: string, { items: input, previous }: WholeBody, output: ReadonlyArray<unknown>): void {
    this.forget(lane)
    const items = join(input, textOf(output))
    const bytes = Buffer.byteLength(items)
    if (this.#budget.reserve(this.#tenant, bytes)) this.#byLane.set(lane, { id, previous, items, bytes })
  }

  forget(lane: string): void {
    const found = this.#byLane.get(lane)
    if (found !== undefined) this.#budget.release(this.#tenant, found.bytes)
    this.#byLane.delete(lane)
  }

  forgetAll(): void {
    for (const lane of [...this.#byLane.keys()]) this.forget(lane)
  }
}
