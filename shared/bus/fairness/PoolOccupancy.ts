/**
 * The slots of one pool and the tenants that have or want them, over all ingresses: the state on which `FairShare.ts` decides.
 *
 * What this ingress does is known at once. What other ingresses do, and how many slots workers have, is known from their
 * announcements (`OccupancyExchange.ts`), so between two of them an ingress takes only its part of what is free. Where the
 * slots are unknown, every tenant may go: without announcements, or while a worker that makes none takes jobs.
 */
import { DrainRate } from "./DrainRate.ts"
import { mayTake, reserveOf, roomOf, shareOf, type TenantDemand } from "./FairShare.ts"
import type { Claimant } from "./FairQueue.ts"

/** What a tenant has and wants at one ingress. */
export interface TenantOccupancy extends TenantDemand {
  readonly tenant: string
}

interface Tenant extends TenantOccupancy {
  weight: number
  priority: Claimant["priority"]
  taken: number
  waiting: number
  /** Of these, at this ingress. */
  ownTaken: number
  ownWaiting: number
  /** How fast its jobs go here, once it has been held back. */
  drain: DrainRate | undefined
}

/** With so many tenants, shares are computed with every decision; with more, at most every `staleMs` milliseconds. */
const fewTenants = 64
const staleMs = 10

/** For how long a worker that has claimed a job, and announces no slots, makes the slots of its pool unknown. */
const silentWorkerMs = 60_000

/** Workers that announce nothing, of which one is enough. */
const maxSilentWorkers = 100

/** The most tenants that one announcement names; the others are announced as one. */
const maxAnnounced = 1_000

/** The name under which `maxAnnounced` sums up the tenants that it does not name. No key has it. */
const others = "-"

type Shares = Partial<Record<Claimant["priority"], number>>

export class PoolOccupancy {
  readonly #tenants = new Map<string, Tenant>()
  readonly #workers = new Map<string, number>()
  /** Workers that have claimed jobs and announce no slots, and when they last did. */
  readonly #silentWorkers = new Map<string, number>()
  readonly #peers = new Map<string, ReadonlyArray<TenantOccupancy>>()
  /** Runs when other ingresses should learn at once what this one has taken. */
  readonly #onGrowth: () => void
  #slots = 0
  #taken = 0
  #waiting = 0
  #ownWaiting = 0
  #shares: Shares = {}
  #sharesAt = Number.NEGATIVE_INFINITY
  #isDirty = false
  #hasChanged = false
  #ingresses = 1
  /** How many more slots this ingress may take until it knows what the others have taken meanwhile. */
  #budget = Number.POSITIVE_INFINITY
  /** How many slots it has taken since the others were last told, and how many it may before they are told at once. */
  #untold = 0
  #mostUntold = Number.POSITIVE_INFINITY

  constructor(onGrowth: () => void = () => undefined) {
    this.#onGrowth = onGrowth
  }

  /** `undefined` where they are not known. */
  get slots(): number | undefined {
    return this.#slots === 0 || this.#silentWorkers.size > 0 ? undefined : this.#slots
  }

  /** Whether a job waits at this ingress. */
  get hasWaiting(): boolean {
    return this.#ownWaiting > 0
  }

  /** Whether a job of this claimant waits at this ingress. */
  hasWaitingOf({ tenant }: Claimant): boolean {
    return (this.#tenants.get(tenant)?.ownWaiting ?? 0) > 0
  }

  /** Whether no tenant may take a slot. */
  get isFull(): boolean {
    const { slots } = this
    return slots !== undefined && !this.#isAlone(slots) && this.#taken >= Math.max(slots, roomOf(slots))
  }

  /** A job of the claimant waits from now on. */
  entered(claimant: Claimant): void {
    const tenant = this.#tenant(claimant)
    tenant.weight = claimant.weight
    tenant.priority = claimant.priority
    this.#count(tenant, 0, 1)
  }

  /** A job that waited is gone. */
  left(claimant: Claimant): void {
    this.#count(this.#tenant(claimant), 0, -1)
  }

  /** A job that waited has been sent to the workers. */
  took(claimant: Claimant): void {
    const tenant = this.#tenant(claimant)
    tenant.drain?.add()
    this.#budget--
    this.#count(tenant, 1, -1)
    if (++this.#untold >= Math.max(1, this.#mostUntold)) this.#onGrowth()
  }

  /** A job that was with the workers has ended. */
  freed(claimant: Claimant): void {
    this.#budget++
    this.#untold--
    this.#count(this.#tenant(claimant), -1, 0)
  }

  mayTake({ tenant: name, weight, priority }: Claimant, now: number): boolean {
    const { slots } = this
    if (slots === undefined || this.#isAlone(slots)) return true
    const tenant = this.#tenants.get(name)
    const taken = tenant?.taken ?? 0
    const share = this.#taken + this.#waiting <= roomOf(slots) ? Number.POSITIVE_INFINITY : this.#share(priority, now)
    const use = { slots, taken: this.#taken, share, ingresses: this.#ingresses }
    const may = mayTake({ taken, weight }, use) && (this.#budget > 0 || (taken === 0 && this.#taken < slots))
    if (!may && tenant !== undefined) tenant.drain ??= new DrainRate()
    return may
  }

  /** To be called now and then, `ms` milliseconds after the last time. */
  tick(now: number, ms: number): void {
    for (const [worker, at] of this.#silentWorkers) {
      if (now - at > silentWorkerMs) this.#silentWorkers.delete(worker)
    }
    for (const { drain, ownWaiting } of this.#tenants.values()) drain?.tick(now, ms, ownWaiting > 0)
  }

  /**
   * For how long one more job of a tenant that is held back would wait, in milliseconds, by how fast its own jobs went of late.
   * 0 for a tenant that is not held back, `undefined` where it is not known.
   */
  waitMs({ tenant: name }: Claimant): number | undefined {
    const tenant = this.#tenants.get(name)
    if (tenant?.drain === undefined || tenant.ownWaiting === 0) return 0
    const { perSecond } = tenant.drain
    return perSecond === undefined ? undefined : 1_000 * tenant.ownWaiting / perSecond
  }

  /** A worker has announced its slots; none where it takes no more jobs. */
  setWorker(worker: string, slots: number): void {
    this.#silentWorkers.delete(worker)
    this.#slots += slots - (this.#workers.get(worker) ?? 0)
    if (slots === 0) this.#workers.delete(worker)
    else this.#workers.set(worker, slots)
    this.#isDirty = true
  }

  /** A worker has claimed a job. */
  claimedBy(worker: string, now: number): void {
    if (this.#workers.has(worker)) return
    if (this.#silentWorkers.size < maxSilentWorkers) this.#silentWorkers.set(worker, now)
  }

  /** What another ingress has and wants; nothing where it is gone. */
  setPeer(peer: string, occupancy: ReadonlyArray<TenantOccupancy>): void {
    for (const { taken, tenant, waiting } of this.#peers.get(peer) ?? []) {
      const known = this.#tenants.get(tenant)
      if (known !== undefined) this.#add(known, -taken, -waiting)
    }
    for (const theirs of occupancy) this.#add(this.#tenant(theirs), theirs.taken, theirs.waiting)
    if (occupancy.length === 0) this.#peers.delete(peer)
    else this.#peers.set(peer, occupancy)
  }

  /** Divides what is free anew among so many ingresses, to be called when it has been announced what this one has. */
  divide(ingresses: number): void {
    this.#ingresses = ingresses
    const { slots } = this
    if (slots === undefined || ingresses === 1) {
      this.#budget = this.#mostUntold = Number.POSITIVE_INFINITY
      return
    }
    // the others may have taken about as many without having told as this one may
    const untold = Number.isFinite(this.#mostUntold) ? (ingresses - 1) * this.#mostUntold : 0
    const free = roomOf(slots) - this.#taken - untold
    this.#budget = Math.max(0, Math.ceil(free / ingresses))
    this.#mostUntold = Math.ceil(this.#budget / 4)
  }

  /** Whether what it has to announce is not as it was last announced. */
  get hasChanged(): boolean {
    return this.#hasChanged
  }

  /** What tenants have and want at this ingress, to be announced. */
  announced(): ReadonlyArray<TenantOccupancy> {
    this.#hasChanged = false
    this.#untold = 0
    const own: Array<TenantOccupancy> = []
    let rest: Pick<TenantOccupancy, "weight" | "taken" | "waiting"> | undefined
    for (const { ownTaken: taken, ownWaiting: waiting, priority, tenant, weight } of this.#tenants.values()) {
      if (taken + waiting === 0) continue
      if (own.length < maxAnnounced) own.push({ tenant, weight, priority, taken, waiting })
      else {
        rest = {
          weight: weight + (rest?.weight ?? 0),
          taken: taken + (rest?.taken ?? 0),
          waiting: waiting + (rest?.waiting ?? 0)
        }
      }
    }
    return rest === undefined ? own : [...own, { tenant: others, priority: "standard", ...rest }]
  }

  /** A pool without a reserve is all a tenant's, as long as no other has or wants a slot. */
  #isAlone(slots: number): boolean {
    return reserveOf(slots) === 0 && this.#tenants.size <= 1
  }

  #share(priority: Claimant["priority"], now: number): number {
    if (this.#isDirty && (this.#tenants.size <= fewTenants || now - this.#sharesAt > staleMs)) {
      this.#shares = {}
      this.#sharesAt = now
      this.#isDirty = false
    }
    return this.#shares[priority] ??= shareOf(roomOf(this.#slots), this.#tenants.values(), priority)
  }

  #tenant({ priority, tenant: name, weight }: Claimant): Tenant {
    let tenant = this.#tenants.get(name)
    if (tenant === undefined) {
      tenant = { tenant: name, weight, priority, taken: 0, waiting: 0, ownTaken: 0, ownWaiting: 0, drain: undefined }
      this.#tenants.set(name, tenant)
    }
    return tenant
  }

  #count(tenant: Tenant, taken: number, waiting: number): void {
    tenant.ownTaken += taken
    tenant.ownWaiting += waiting
    this.#ownWaiting += waiting
    this.#hasChanged = true
    this.#add(tenant, taken, waiting)
  }

  #add(tenant: Tenant, taken: number, waiting: number): void {
    tenant.taken += taken
    tenant.waiting += waiting
    this.#taken += taken
    this.#waiting += waiting
    this.#isDirty = true
    if (tenant.taken + tenant.waiting === 0) this.#tenants.delete(tenant.tenant)
  }
}
