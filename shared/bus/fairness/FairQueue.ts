/**
 * A bounded queue that is fair between tenants: each tenant has a line of its own, and the lines of a class are served in
 * turn, by their weights. A tenant with a thousand waiting jobs delays another by one job, not by a thousand.
 *
 * An urgent class is served before one that is less so; but where a job of that one has waited for a while, it gets every
 * eighth turn, so that nobody waits for ever. To let such jobs join the urgent ones instead would put all that one tenant
 * has dumped before what others ask for now.
 *
 * Turns are by virtual time, as in start-time fair queueing: a line's next turn comes `1 / weight` after its last one, and
 * the earliest is served. A line that has become empty is kept until its turn has passed, or its tenant would gain by
 * asking for one thing at a time. Which tenants may go at all, `FairShare.ts` decides.
 */
import TinyQueue from "tinyqueue"
import type { PriorityClass } from "../../contract/PriorityClass.ts"

export interface QueueLimits {
  /** Items over all tenants. */
  readonly items: number
  readonly itemsPerTenant: number
  /** A class in which an item has waited for so many milliseconds has a share of the turns, whatever else is waiting. */
  readonly ageingMs: number
}

const always = () => true

/** How many turns there are to one of a class that would otherwise have none. */
const agedEvery = 8

/** Whose an item is, and how urgent. */
export interface Claimant {
  readonly tenant: string
  /** The tenant's share of the turns within its class, at least 1. */
  readonly weight: number
  readonly priority: PriorityClass
}

interface Entry<A> {
  readonly item: A
  readonly claimant: Claimant
  /** Since when it has been here, in epoch milliseconds. */
  readonly since: number
}

interface Line<A> {
  readonly tenant: string
  readonly entries: Set<Entry<A>>
  weight: number
  /** The virtual time of its next turn, and what decides between two of the same time. */
  turn: number
  order: number
}

/** The lines of a class. */
class Rank<A> {
  readonly #lines = new Map<string, Line<A>>()
  readonly #turns = new TinyQueue<Line<A>>([], (a, b) => a.turn - b.turn || a.order - b.order)
  /** In order of arrival. */
  readonly #waiting = new Set<Entry<A>>()
  /** The virtual time of the turn that was served last. */
  #time = 0
  #order = 0

  get size(): number {
    return this.#waiting.size
  }

  get oldest(): Entry<A> | undefined {
    const [oldest] = this.#waiting
    return oldest
  }

  add(entry: Entry<A>): void {
    const { tenant, weight } = entry.claimant
    let line = this.#lines.get(tenant)
    if (line === undefined) {
      line = { tenant, entries: new Set(), weight, turn: this.#time, order: this.#order++ }
      this.#lines.set(tenant, line)
      this.#turns.push(line)
    }
    line.weight = weight
    line.entries.add(entry)
    this.#waiting.add(entry)
  }

  delete(entry: Entry<A>): void {
    this.#lines.get(entry.claimant.tenant)?.entries.delete(entry)
    this.#waiting.delete(entry)
    if (this.#waiting.size > 0) return
    // where nobody waits, nobody's past turns matter
    this.#lines.clear()
    this.#turns.data.length = 0
    this.#turns.length = 0
    this.#time = 0
  }

  /** The first entry of the first line that `mayGo`. */
  take(mayGo: (claimant: Claimant) => boolean): Entry<A> | undefined {
    const held: Array<Line<A>> = []
    let taken: Entry<A> | undefined
    for (let line = this.#turns.pop(); line !== undefined; line = this.#turns.pop()) {
      const [entry] = line.entries
      if (entry === undefined) {
        this.#time = Math.max(this.#time, line.turn)
        this.#lines.delete(line.tenant)
        continue
      }
      if (!mayGo(entry.claimant)) {
        held.push(line)
        continue
      }
      this.#time = Math.max(this.#time, line.turn)
      line.turn = this.#time + 1 / line.weight
      line.order = this.#order++
      this.#turns.push(line)
      taken = entry
      break
    }
    for (const line of held) {
      // a line that is held back keeps its place, but saves up no turns
      line.turn = Math.max(line.turn, this.#time)
      this.#turns.push(line)
    }
    if (taken !== undefined) this.delete(taken)
    return taken
  }

  /** How many are served before the next item of this tenant would be. */
  ahead({ tenant, weight }: Claimant): number {
    const own = this.#lines.get(tenant)
    const turn = (own?.turn ?? this.#time) + (own?.entries.size ?? 0) / weight
    let ahead = 0
    for (const line of this.#lines.values()) {
      const turns = line === own ? line.entries.size : Math.floor((turn - line.turn) * line.weight) + 1
      ahead += Math.max(0, Math.min(line.entries.size, turns))
    }
    return ahead
  }
}

export class FairQueue<A> {
  readonly #limits: QueueLimits
  readonly #ranks: Readonly<Record<PriorityClass, Rank<A>>> = {
    interactive: new Rank(),
    standard: new Rank(),
    batch: new Rank()
  }
  /** The most urgent first. */
  readonly #order = [this.#ranks.interactive, this.#ranks.standard, this.#ranks.batch]
  readonly #entries = new Map<A, Entry<A>>()
  readonly #sizes = new Map<string, number>()
  /** How many turns others have had while something has waited for too long. */
  #passed = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  /** `false` where the queue, or what the tenant may have of it, is full. */
  offer(item: A, claimant: Claimant, now: number): boolean {
    const own = this.#sizes.get(claimant.tenant) ?? 0
    if (this.#entries.size >= this.#limits.items || own >= this.#limits.itemsPerTenant) return false
    const entry = { item, claimant, since: now }
    this.#entries.set(item, entry)
    this.#sizes.set(claimant.tenant, own + 1)
    this.#ranks[claimant.priority].add(entry)
    return true
  }

  /** The next item whose tenant `mayGo`; the lines of the others keep their places. */
  take(now: number, mayGo: (claimant: Claimant) => boolean = always): A | undefined {
    const aged = this.#aged(now)
    const passed = aged === undefined ? this.#passed : (this.#passed + 1) % agedEvery
    const first = aged !== undefined && passed === 0 ? aged.take(mayGo) : undefined
    const entry = first ?? this.#mostUrgent(mayGo)
    if (entry === undefined) return undefined
    this.#passed = passed
    this.#forget(entry)
    return entry.item
  }

  /** Does nothing where the item is not there. */
  remove(item: A): void {
    const entry = this.#entries.get(item)
    if (entry === undefined) return
    this.#ranks[entry.claimant.priority].delete(entry)
    this.#forget(entry)
  }

  /** How many would be served before another item of this claimant, were it there now and nothing else came. */
  ahead(claimant: Claimant): number {
    const rank = this.#ranks[claimant.priority]
    let ahead = rank.ahead(claimant)
    for (const above of this.#order) {
      if (above === rank) break
      ahead += above.size
    }
    return ahead
  }

  #mostUrgent(mayGo: (claimant: Claimant) => boolean): Entry<A> | undefined {
    for (const rank of this.#order) {
      const entry = rank.size === 0 ? undefined : rank.take(mayGo)
      if (entry !== undefined) return entry
    }
    return undefined
  }

  /** The class with the oldest item of those that have waited for too long behind a more urgent class. */
  #aged(now: number): Rank<A> | undefined {
    const urgent = this.#order.find(({ size }) => size > 0)
    let aged: Rank<A> | undefined
    for (const rank of this.#order) {
      const since = rank === urgent ? undefined : rank.oldest?.since
      if (since === undefined || now - since < this.#limits.ageingMs) continue
      if (since < (aged?.oldest?.since ?? Number.POSITIVE_INFINITY)) aged = rank
    }
    return aged
  }

  #forget({ claimant: { tenant }, item }: Entry<A>): void {
    this.#entries.delete(item)
    const left = (this.#sizes.get(tenant) ?? 1) - 1
    if (left === 0) this.#sizes.delete(tenant)
    else this.#sizes.set(tenant, left)
  }
}
