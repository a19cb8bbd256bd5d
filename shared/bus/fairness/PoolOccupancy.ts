/**
 * The slots of one pool, and the tenants of all ingresses that use or want them: the state behind the decisions of `FairShare.ts`.
 *
 * An ingress knows its own jobs immediately. It learns the jobs of other ingresses and the slots of workers from announcements
 * (`OccupancyExchange.ts`), so between two announcements it takes only its part of the free slots. If no worker announces its
 * slots, or a worker that announces none takes jobs, the number of slots is unknown and every tenant may take one.
 */
import { mayTake, mayTakeReserved, reserveOf, roomOf, shareOf } from "./FairShare.ts"
import type { Claimant } from "./FairQueue.ts"
import { type TenantOccupancy, TenantUse } from "./TenantUse.ts"
import { newestVersion, type Version } from "../protocol/Subjects.ts"

/** Up to this many tenants, every decision uses current shares; with more, shares may be `staleMs` milliseconds old. */
const fewTenants = 32
const staleMs = 10

/** How long the slots of a pool count as unknown after a worker that announces none has claimed a job. */
const silentWorkerMs = 60_000

/** Maximum number of such workers to remember; a single one makes the slots unknown. */
const maxSilentWorkers = 100

/** Stands for workers of version 0.1.0 that have claimed no job yet, whose ids are unknown. */
const unnamedWorker = "-"

/** Maximum number of workers to remember that take no more jobs. */
const maxLeaving = 1_000

/** Maximum number of tenants in an announcement; `others` is the sum of the rest. */
const maxAnnounced = 1_000

/** The tenant that stands for the rest. No key has this name. */
const others = "-"

type Shares = Partial<Record<Claimant["priority"], number>>

export class PoolOccupancy {
  readonly #tenants = new Map<string, TenantUse>()
  readonly #workers = new Map<string, { readonly slots: number; readonly isNewest: boolean }>()
  /** Workers that announce no slots: when each last claimed a job, and of which version. */
  readonly #silentWorkers = new Map<string, { readonly at: number; readonly version: Version }>()
  /** Workers that take no more jobs, the oldest first. They may claim jobs that were already on their way. */
  readonly #leaving = new Set<string>()
  readonly #peers = new Map<string, ReadonlyArray<TenantOccupancy>>()
  /** Runs when this ingress has taken so many slots that the others should learn of it immediately. */
  readonly #onGrowth: () => void
  #slots = 0
  /** How many of the workers read the newest version of the protocol. */
  #newest = 0
  #version: Version = 2
  #taken = 0
  #waiting = 0
  #ownWaiting = 0
  #shares: Shares = {}
  #sharesAt = Number.NEGATIVE_INFINITY
  #isDirty = false
  #hasChanged = false
  #ingresses = 1
  /** How many more slots this ingress may take before the next announcement of the others. */
  #budget = Number.POSITIVE_INFINITY
  /** How many slots this ingress has taken since its last announcement, and how many make it announce immediately. */
  #unannounced = 0
  #mostUnannounced = Number.POSITIVE_INFINITY

  constructor(onGrowth: () => void = () => undefined) {
    this.#onGrowth = onGrowth
  }

  /** The slots of all workers together; `undefined` if unknown. */
  get slots(): number | undefined {
    return this.#slots === 0 || this.#silentWorkers.size > 0 ? undefined : this.#slots
  }

  /** Whether no worker is known that takes jobs. */
  get isDeserted(): boolean {
    return this.#workers.size + this.#silentWorkers.size === 0
  }

  /** The newest protocol version that all workers read. Keeps its value while there are none; at first the oldest version. */
  get version(): Version {
    for (const { version } of this.#silentWorkers.values()) if (version < this.#version) return version
    return this.#version
  }

  /** Whether a job waits at this ingress. */
  get hasWaiting(): boolean {
    return this.#ownWaiting > 0
  }

  /** Whether a job of this claimant and its model waits at this ingress. */
  hasWaitingOf({ model, tenant }: Claimant): boolean {
    return (this.#tenants.get(tenant)?.of(model)?.ownWaiting ?? 0) > 0
  }

  /** Whether no tenant may take a slot. */
  get isFull(): boolean {
    const { slots } = this
    return slots !== undefined && !this.#isAlone(slots) && this.#taken >= Math.max(slots, roomOf(slots))
  }

  /** Whether a slot would still be free if every waiting job had one. */
  get hasRoom(): boolean {
    const { slots } = this
    return slots !== undefined && this.#taken + this.#waiting < slots
  }

  /** A job starts to wait at this ingress. */
  entered(claimant: Claimant): void {
    const tenant = this.#tenant(claimant)
    tenant.weight = claimant.weight
    tenant.priority = claimant.priority
    this.#count(tenant, claimant, 0, 1)
  }

  /** A waiting job leaves without being published. */
  left(claimant: Claimant): void {
    this.#count(this.#tenant(claimant), claimant, 0, -1)
  }

  /** A waiting job was published. */
  took(claimant: Claimant): void {
    const tenant = this.#tenant(claimant)
    tenant.of(claimant.model)?.drain?.add()
    this.#take(tenant, claimant, -1)
  }

  /** A published job has ended, or waits for a provider without a slot. */
  freed(claimant: Claimant): void {
    this.#budget++
    this.#unannounced--
    this.#count(this.#tenant(claimant), claimant, -1, 0)
  }

  /** A job that waited for a provider has taken a slot again. */
  retook(claimant: Claimant): void {
    this.#take(this.#tenant(claimant), claimant, 0)
  }

  mayTake({ model, priority, tenant: name, weight }: Claimant, now: number): boolean {
    const { slots } = this
    if (slots === undefined || this.#isAlone(slots)) return true
    const tenant = this.#tenants.get(name)
    const [room, kept] = [roomOf(slots), reserveOf(slots)]
    const isScarce = this.#taken + this.#waiting > room - kept
    const share = isScarce ? this.#share(priority, now) : Number.POSITIVE_INFINITY
    const use = { slots, taken: this.#taken, share, ingresses: this.#ingresses }
    const own = tenant?.of(model)?.taken ?? 0
    const isAllowed = mayTake({ taken: tenant?.taken ?? 0, weight }, use) || this.#mayTakeReserved(tenant, own, use)
    const isBelowShare = !isScarce || tenant?.isBelowShare(model, Math.min(room, share * weight), kept) !== false
    // one with few slots need not wait for the announcements of others: it takes little of the reserve
    const isKnownFree = this.#budget > 0 || (own <= kept / (2 * this.#ingresses) && this.#taken < slots)
    const may = isAllowed && isBelowShare && isKnownFree
    if (!may) tenant?.held(model)
    return may
  }

  /** Whether a model with so many slots may take one of the reserve, because only jobs of its own tenant wait. */
  #mayTakeReserved(tenant: TenantUse | undefined, own: number, use: Parameters<typeof mayTakeReserved>[1]): boolean {
    return tenant !== undefined && tenant.models > 1 && tenant.waiting === this.#waiting && mayTakeReserved(own, use)
  }

  /** Runs periodically: forgets what tenants wanted some seconds ago. */
  age(now: number): void {
    this.#isDirty = true
    for (const [name, tenant] of this.#tenants) {
      tenant.age(now)
      if (!tenant.isRecent) this.#tenants.delete(name)
    }
  }

  /** Runs periodically; see `DrainRate.tick`. */
  tick(now: number, ms: number, isServed: boolean): void {
    for (const [worker, { at }] of this.#silentWorkers) {
      if (now - at > silentWorkerMs) this.#silentWorkers.delete(worker)
    }
    for (const tenant of this.#tenants.values()) tenant.tick(now, ms, isServed)
  }

  /** The pool's queue was not served for a while; see `DrainRate.interrupt`. */
  interrupt(): void {
    for (const tenant of this.#tenants.values()) tenant.interrupt()
  }

  /**
   * How long a new job of a tenant's model that is held back would wait, in milliseconds, at the recent rate of that model's jobs. 0 if
   * it is not held back; `undefined` if unknown.
   */
  waitMs({ model, tenant }: Claimant): number | undefined {
    const { drain, ownWaiting = 0 } = this.#tenants.get(tenant)?.of(model) ?? {}
    if (drain === undefined || ownWaiting === 0) return 0
    return drain.perSecond === undefined ? undefined : 1_000 * ownWaiting / drain.perSecond
  }

  /** A worker has announced its slots, 0 if it takes no more jobs, and the newest version of the protocol that it reads. */
  setWorker(worker: string, slots: number, version = 2): void {
    this.#silentWorkers.delete(worker)
    const known = this.#workers.get(worker)
    const isNewest = version >= newestVersion
    this.#slots += slots - (known?.slots ?? 0)
    this.#newest += Number(isNewest && slots > 0) - Number(known?.isNewest ?? false)
    if (slots === 0) this.#leave(worker)
    else {
      this.#workers.set(worker, { slots, isNewest })
      this.#silentWorkers.delete(unnamedWorker)
    }
    // after a NATS outage, the same workers come back
    if (this.#workers.size > 0) this.#version = this.#newest === this.#workers.size ? newestVersion : 2
    this.#isDirty = true
  }

  /** A worker has claimed a job of this version. If it has announced no slots, this may be the newest version that it reads. */
  claimedBy(worker: string, version: Version, now: number): void {
    if (this.#workers.has(worker) || this.#leaving.has(worker)) return
    if (this.#silentWorkers.size < maxSilentWorkers) this.#silentWorkers.set(worker, { at: now, version })
  }

  /** The oldest version's queue has pull requests. If the pool is deserted, they come from workers that do not announce themselves. */
  pulledFormer(now: number): void {
    if (this.isDeserted) this.#silentWorkers.set(unnamedWorker, { at: now, version: 2 })
  }

  #leave(worker: string): void {
    this.#workers.delete(worker)
    this.#leaving.add(worker)
    const [oldest = worker] = this.#leaving
    if (this.#leaving.size > maxLeaving) this.#leaving.delete(oldest)
  }

  /** Replaces the occupancy of another ingress; empty if that ingress is gone. */
  setPeer(peer: string, occupancy: ReadonlyArray<TenantOccupancy>): void {
    for (const { models, tenant } of this.#peers.get(peer) ?? []) {
      const known = this.#tenants.get(tenant)
      if (known === undefined) continue
      for (const { model, taken, waiting } of models) this.#add(known, model, -taken, -waiting, false)
    }
    for (const theirs of occupancy) {
      const tenant = this.#tenant(theirs)
      for (const { model, taken, waiting } of theirs.models) this.#add(tenant, model, taken, waiting, false)
    }
    if (occupancy.length === 0) this.#peers.delete(peer)
    else this.#peers.set(peer, occupancy)
  }

  /** Divides the free slots among the ingresses again. Runs after each announcement. */
  divide(ingresses: number): void {
    this.#ingresses = ingresses
    const { slots } = this
    if (slots === undefined || ingresses === 1) {
      this.#budget = this.#mostUnannounced = Number.POSITIVE_INFINITY
      return
    }
    // each other ingress may have taken as many slots without an announcement as this one may
    const unannounced = Number.isFinite(this.#mostUnannounced) ? (ingresses - 1) * this.#mostUnannounced : 0
    const free = roomOf(slots) - this.#taken - unannounced
    this.#budget = Math.max(0, Math.ceil(free / ingresses))
    this.#mostUnannounced = Math.ceil(this.#budget / 4)
  }

  /** Whether this ingress's occupancy has changed since the last announcement. */
  get hasChanged(): boolean {
    return this.#hasChanged
  }

  /** The occupancy of this ingress for an announcement. */
  announced(): ReadonlyArray<TenantOccupancy> {
    this.#hasChanged = false
    this.#unannounced = 0
    const own: Array<TenantOccupancy> = []
    for (const tenant of this.#tenants.values()) {
      const announced = tenant.announced()
      if (announced !== undefined) own.push(announced)
    }
    const rest = own.splice(maxAnnounced)
    const sum = (of: "weight" | "taken" | "waiting") => rest.reduce((total, tenant) => total + tenant[of], 0)
    if (rest.length === 0) return own
    const [weight, taken, waiting] = [sum("weight"), sum("taken"), sum("waiting")]
    const models = [{ model: others, taken, waiting }]
    return [...own, { tenant: others, priority: "standard", weight, taken, waiting, models }]
  }

  /** A tenant's model may use all slots of a pool without a reserve while no other has or wants one. */
  #isAlone(slots: number): boolean {
    if (reserveOf(slots) > 0) return false
    let models = 0
    for (const tenant of this.#tenants.values()) if (tenant.isActive && (models += tenant.models) > 1) return false
    return true
  }

  #share(priority: Claimant["priority"], now: number): number {
    if (this.#isDirty && (this.#tenants.size <= fewTenants || now - this.#sharesAt > staleMs)) {
      this.#shares = {}
      this.#sharesAt = now
      this.#isDirty = false
    }
    return this.#shares[priority] ??= shareOf(
      roomOf(this.#slots),
      this.#tenants.values(),
      priority,
      reserveOf(this.#slots)
    )
  }

  #tenant(about: Pick<Claimant, "priority" | "tenant" | "weight">): TenantUse {
    let tenant = this.#tenants.get(about.tenant)
    if (tenant === undefined) this.#tenants.set(about.tenant, tenant = new TenantUse(about))
    return tenant
  }

  /** A job takes a slot; `waiting` is -1 if it has waited for its turn. */
  #take(tenant: TenantUse, claimant: Claimant, waiting: number): void {
    this.#budget--
    this.#count(tenant, claimant, 1, waiting)
    if (++this.#unannounced >= Math.max(1, this.#mostUnannounced)) this.#onGrowth()
  }

  #count(tenant: TenantUse, { model }: Claimant, taken: number, waiting: number): void {
    this.#ownWaiting += waiting
    this.#hasChanged = true
    this.#add(tenant, model, taken, waiting, true)
  }

  #add(tenant: TenantUse, model: string, taken: number, waiting: number, isOwn: boolean): void {
    tenant.count(model, taken, waiting, isOwn)
    this.#taken += taken
    this.#waiting += waiting
    this.#isDirty = true
  }
}
