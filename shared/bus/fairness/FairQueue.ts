/**
 * A bounded queue that is fair between tenants. Each tenant has its own line, and the lines of a class take turns by weight:
 * a tenant with a thousand waiting jobs delays another tenant by one job.
 *
 * More urgent classes go first. A class whose oldest job has waited too long gets every eighth turn, so that no job waits
 * forever. Its jobs do not move to the urgent class, where one tenant's backlog would delay all urgent jobs.
 *
 * Turns follow virtual time, as in start-time fair queueing: a line's next turn comes `1 / weight` after its last one, and the
 * earliest turn is served. An empty line is kept until its next turn has passed; otherwise a tenant would gain by sending one
 * job at a time. Within a line, the tenant's models take turns. `FairShare.ts` decides which tenants may go at all, and for which models.
 */
import TinyQueue from "tinyqueue"
import type { PriorityClass } from "../../contract/PriorityClass.ts"

export interface QueueLimits {
  /** Items over all tenants. */
  readonly items: number
  readonly itemsPerTenant: number
  /** A class whose oldest item has waited for this many milliseconds gets a share of the turns. */
  readonly ageingMs: number
}

const always = () => true

/** A class that has waited too long gets one of this many turns. */
const agedEvery = 8

/** The tenant of an item, with its weight and priority class, and the model that the item is for. */
export interface Claimant {
  readonly tenant: string
  readonly model: string
  /** The tenant's share of the turns within its class, at least 1. */
  readonly weight: number
  readonly priority: PriorityClass
}

interface Entry<A> {
  readonly item: A
  readonly claimant: Claimant
  /** When it entered the queue, in milliseconds of the clock that supplies `now`. */
  readonly since: number
}

interface Line<A> {
  readonly tenant: string
  /** The entries of each model, in order of arrival. The models are in the order of their turns. */
  readonly models: Map<string, Set<Entry<A>>>
  weight: number
  /** The virtual time of its next turn; among equal times, the lowest `order` goes first. */
  turn: number
  order: number
}

/** The lines of a class. */
class Rank<A> {
  readonly #lines = new Map<string, Line<A>>()
  readonly #turns = new TinyQueue<Line<A>>([], (a, b) => a.turn - b.turn || a.order - b.order)
  /** The class's only entry, if it has just one: the usual case, which needs no line. */
  #only: Entry<A> | undefined
  /** All entries in lines, in order of arrival. */
  readonly #waiting = new Set<Entry<A>>()
  /** The virtual time of the last turn. */
  #time = 0
  #order = 0

  get size(): number {
    return this.#only === undefined ? this.#waiting.size : 1
  }

  get oldest(): Entry<A> | undefined {
    if (this.#only !== undefined) return this.#only
    const [oldest] = this.#waiting
    return oldest
  }

  add(entry: Entry<A>): void {
    if (this.size === 0) {
      this.#only = entry
      return
    }
    if (this.#only !== undefined) this.#line(this.#only)
    this.#only = undefined
    this.#line(entry)
  }

  #line(entry: Entry<A>): void {
    const { model, tenant, weight } = entry.claimant
    let line = this.#lines.get(tenant)
    if (line === undefined) {
      line = { tenant, models: new Map(), weight, turn: this.#time, order: this.#order++ }
      this.#lines.set(tenant, line)
      this.#turns.push(line)
    }
    line.weight = weight
    const entries = line.models.get(model)
    if (entries === undefined) line.models.set(model, new Set([entry]))
    else entries.add(entry)
    this.#waiting.add(entry)
  }

  delete(entry: Entry<A>): void {
    if (entry === this.#only) {
      this.#only = undefined
      return
    }
    const { model, tenant } = entry.claimant
    const models = this.#lines.get(tenant)?.models
    const entries = models?.get(model)
    entries?.delete(entry)
    if (entries?.size === 0) models?.delete(model)
    this.#waiting.delete(entry)
    if (this.#waiting.size > 0) return
    // past turns matter only while items wait
    this.#lines.clear()
    this.#turns.data.length = 0
    this.#turns.length = 0
    this.#time = 0
  }

  /** Takes the first entry, of the first line with one, that `mayGo`. */
  take(mayGo: (claimant: Claimant) => boolean): Entry<A> | undefined {
    const only = this.#only
    if (only !== undefined) {
      if (!mayGo(only.claimant)) return undefined
      this.#only = undefined
      return only
    }
    const held: Array<Line<A>> = []
    let taken: Entry<A> | undefined
    for (let line = this.#turns.pop(); line !== undefined; line = this.#turns.pop()) {
      if (line.models.size === 0) {
        this.#time = Math.max(this.#time, line.turn)
        this.#lines.delete(line.tenant)
        continue
      }
      const entry = nextIn(line, mayGo)
      if (entry === undefined) {
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
      // a held line keeps its place, but saves up no turns
      line.turn = Math.max(line.turn, this.#time)
      this.#turns.push(line)
    }
    if (taken !== undefined) this.delete(taken)
    return taken
  }

  /** How many items would be served before the next item of this tenant's model. */
  ahead({ model, tenant, weight }: Claimant): number {
    if (this.#only !== undefined) return 1
    const own = this.#lines.get(tenant)
    const ownTurns = own === undefined ? 0 : aheadIn(own, model)
    const turn = (own?.turn ?? this.#time) + ownTurns / weight
    let ahead = ownTurns
    for (const line of this.#lines.values()) {
      if (line === own) continue
      const turns = Math.floor((turn - line.turn) * line.weight) + 1
      ahead += Math.max(0, Math.min(sizeOf(line), turns))
    }
    return ahead
  }
}

/** The first entry of the first model that `mayGo`. That model's next turn comes after those of the line's other models. */
const nextIn = <A>({ models }: Line<A>, mayGo: (claimant: Claimant) => boolean): Entry<A> | undefined => {
  for (const [model, entries] of models) {
    const [entry] = entries
    if (entry === undefined || !mayGo(entry.claimant)) continue
    if (models.size > 1) {
      models.delete(model)
      models.set(model, entries)
    }
    return entry
  }
  return undefined
}

const sizeOf = <A>({ models }: Line<A>): number => {
  let size = 0
  for (const entries of models.values()) size += entries.size
  return size
}

/** How many entries of the line have their turn before the model's next entry. */
const aheadIn = <A>({ models }: Line<A>, model: string): number => {
  const own = models.get(model)?.size ?? 0
  let ahead = own
  for (const [other, { size }] of models) if (other !== model) ahead += Math.min(size, own + 1)
  return ahead
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
  /** How many turns other classes have had while one has waited too long. */
  #passed = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  /** Adds an item; `false` if the queue or the tenant's part of it is full. */
  offer(item: A, claimant: Claimant, now: number): boolean {
    const own = this.#sizes.get(claimant.tenant) ?? 0
    if (this.#entries.size >= this.#limits.items || own >= this.#limits.itemsPerTenant) return false
    const entry = { item, claimant, since: now }
    this.#entries.set(item, entry)
    this.#sizes.set(claimant.tenant, own + 1)
    this.#ranks[claimant.priority].add(entry)
    return true
  }

  /** Takes the next item whose tenant `mayGo`. The lines of other tenants keep their places. */
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

  /** Does nothing if the queue does not have the item. */
  remove(item: A): void {
    const entry = this.#entries.get(item)
    if (entry === undefined) return
    this.#ranks[entry.claimant.priority].delete(entry)
    this.#forget(entry)
  }

  /** How many items would be served before a new item of this claimant, if no others arrived. */
  ahead(claimant: Claimant): number {
    const rank = this.#ranks[claimant.priority]
    const moreUrgent = this.#order.slice(0, this.#order.indexOf(rank))
    return moreUrgent.reduce((ahead, { size }) => ahead + size, rank.ahead(claimant))
  }

  #mostUrgent(mayGo: (claimant: Claimant) => boolean): Entry<A> | undefined {
    for (const rank of this.#order) {
      const entry = rank.size === 0 ? undefined : rank.take(mayGo)
      if (entry !== undefined) return entry
    }
    return undefined
  }

  /** Among the classes that have waited too long behind a more urgent one, the class with the oldest item. */
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
