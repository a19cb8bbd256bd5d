/** What one tenant uses and wants of a pool, in all and for each of its models, at all ingresses and at this one. */
import { DrainRate } from "./DrainRate.ts"
import type { Claimant } from "./FairQueue.ts"
import { type ModelDemand, modelShareOf, type TenantDemand } from "./FairShare.ts"

/** The taken slots and waiting jobs of one of a tenant's models at one ingress. */
export interface ModelOccupancy extends ModelDemand {
  readonly model: string
}

/** A tenant's taken slots and waiting jobs at one ingress, in all and by model. */
export interface TenantOccupancy extends TenantDemand {
  readonly tenant: string
  readonly models: ReadonlyArray<ModelOccupancy>
}

/** After this long, in milliseconds, less than twice that, a demand that has fallen is forgotten. */
const recentMs = 5_000

class Use {
  /** The most jobs since the last time that `age` forgot, and in the time before. */
  #most = 0
  #mostBefore = 0
  #forgotAt = Number.NEGATIVE_INFINITY
  taken = 0
  waiting = 0
  /** The jobs at this ingress. */
  ownTaken = 0
  ownWaiting = 0

  /** Whether it has or wants a slot. */
  get isActive(): boolean {
    return this.taken + this.waiting > 0
  }

  /** Whether it has had or wanted a slot recently. */
  get isRecent(): boolean {
    return Math.max(this.#most, this.#mostBefore) > 0
  }

  /** How many jobs more there were recently. */
  get fewer(): number {
    return Math.max(this.#most, this.#mostBefore) - this.taken - this.waiting
  }

  /** Runs periodically: forgets former demands. */
  age(now: number): void {
    if (now - this.#forgotAt < recentMs) return
    this.#forgotAt = now
    this.#mostBefore = this.#most
    this.#most = this.taken + this.waiting
  }

  add(taken: number, waiting: number, isOwn: boolean): void {
    this.taken += taken
    this.waiting += waiting
    this.#most = Math.max(this.#most, this.taken + this.waiting)
    if (!isOwn) return
    this.ownTaken += taken
    this.ownWaiting += waiting
  }
}

class ModelUse extends Use {
  /** How fast its jobs leave this ingress; measured from the first time that it is held back. */
  drain: DrainRate | undefined
}

/** Maximum number of a tenant's models in an announcement; `otherModels` is the sum of the rest. */
const maxModels = 16

/** The model that stands for the rest. */
const otherModels = "-"

export class TenantUse extends Use implements TenantDemand {
  readonly tenant: string
  weight: number
  priority: Claimant["priority"]
  readonly #models = new Map<string, ModelUse>()
  /** The share of a model for so many slots of the tenant. */
  #share: { readonly slots: number; readonly each: number } | undefined

  constructor({ priority, tenant, weight }: Pick<Claimant, "priority" | "tenant" | "weight">) {
    super()
    this.tenant = tenant
    this.weight = weight
    this.priority = priority
  }

  /** How many models have or want slots, or did so recently. */
  get models(): number {
    return this.#models.size
  }

  of(model: string): Readonly<ModelUse> | undefined {
    return this.#models.get(model)
  }

  /** `isOwn`: at this ingress. */
  count(name: string, taken: number, waiting: number, isOwn: boolean): void {
    this.add(taken, waiting, isOwn)
    this.#share = undefined
    let model = this.#models.get(name)
    if (model === undefined) this.#models.set(name, model = new ModelUse())
    model.add(taken, waiting, isOwn)
  }

  override age(now: number): void {
    super.age(now)
    this.#share = undefined
    for (const [name, model] of this.#models) {
      model.age(now)
      if (!model.isRecent) this.#models.delete(name)
    }
  }

  /** Whether the model has fewer slots than its share of the tenant's `slots`; for `kept`, see `modelShareOf`. */
  isBelowShare(model: string, slots: number, kept: number): boolean {
    if (this.#models.size < 2) return true
    if (this.#share?.slots !== slots) this.#share = { slots, each: modelShareOf(slots, this.#models.values(), kept) }
    return (this.#models.get(model)?.taken ?? 0) < this.#share.each
  }

  /** A job of the model was held back. */
  held(name: string): void {
    const model = this.#models.get(name)
    if (model !== undefined) model.drain ??= new DrainRate()
  }

  /** Runs periodically; see `DrainRate.tick`. */
  tick(now: number, ms: number, isServed: boolean): void {
    for (const { drain, ownWaiting } of this.#models.values()) drain?.tick(now, ms, ownWaiting > 0, isServed)
  }

  /** The pool's queue was not served for a while; see `DrainRate.interrupt`. */
  interrupt(): void {
    for (const { drain } of this.#models.values()) drain?.interrupt()
  }

  /** What this ingress announces; `undefined` if it has no job of the tenant. */
  announced(): TenantOccupancy | undefined {
    const { ownTaken: taken, ownWaiting: waiting, priority, tenant, weight } = this
    if (taken + waiting === 0) return undefined
    const models: Array<ModelOccupancy> = []
    for (const [model, { ownTaken, ownWaiting }] of this.#models) {
      if (ownTaken + ownWaiting > 0) models.push({ model, taken: ownTaken, waiting: ownWaiting })
    }
    if (models.length > maxModels) models.push(sumOf(models.splice(maxModels - 1)))
    return { tenant, weight, priority, taken, waiting, models }
  }
}

const sumOf = (models: ReadonlyArray<ModelOccupancy>): ModelOccupancy => {
  const sum = { model: otherModels, taken: 0, waiting: 0 }
  for (const { taken, waiting } of models) {
    sum.taken += taken
    sum.waiting += waiting
  }
  return sum
}
