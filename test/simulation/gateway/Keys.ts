/** API keys with limits: an administrator makes and edits them through the shipped store, and ingress follows them. */
import { Effect, Layer, Redacted } from "effect"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { backOff } from "../../../shared/nats/JetStream.ts"
import { ControlNats } from "../../../shared/nats/Nats.ts"
import type { Cluster } from "../nats/Cluster.ts"
import { Machine, type World } from "../world/World.ts"
import { surroundings } from "./Processes.ts"

/** A key as the scenario plans it. */
export interface PlannedKey {
  /** The name by which requests refer to it. */
  readonly tenant: string
  readonly concurrentRequests: number | null
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
}

/** A change of a key's weight, which limits nothing. */
export interface KeyEdit {
  /** In milliseconds of the world. */
  readonly at: number
  readonly tenant: string
  readonly weight: number
}

/** A key that the administrator has made. */
export interface KnownKey {
  readonly plan: PlannedKey
  readonly id: string
  readonly secret: string
  /** The last weight that was stored. */
  weight: number
}

export class Administrator {
  readonly machine = new Machine("admin")
  /** The keys by tenant. */
  readonly keys = new Map<string, KnownKey>()
  readonly #world: World
  readonly #cluster: Cluster

  constructor(world: World, cluster: Cluster) {
    this.#world = world
    this.#cluster = cluster
  }

  /** Makes the keys, then edits them. */
  start(plans: ReadonlyArray<PlannedKey>, edits: ReadonlyArray<KeyEdit>): void {
    const work = Effect.gen({ self: this }, function*() {
      const store = yield* KeyStore
      for (const plan of plans) {
        const { tenant, ...limits } = plan
        const { key, secret } = yield* Effect.retry(store.create({ name: tenant, ...limits }), backOff)
        this.keys.set(tenant, { plan, id: key.id, secret: Redacted.value(secret), weight: key.weight })
        this.#world.trace.tell("admin", `${tenant} is ${key.id} with ${JSON.stringify(limits)}`)
      }
      for (const { at, tenant, weight } of edits) {
        yield* Effect.sleep(Math.max(0, at - this.#world.now))
        const key = this.keys.get(tenant)
        if (key === undefined) continue
        yield* Effect.retry(store.edit(key.id, { weight }), backOff)
        key.weight = weight
        this.#world.trace.tell("admin", `${tenant} has the weight ${weight}`)
      }
    })
    const layer = KeyStore.layer.pipe(
      Layer.provide(ControlNats.layerPatient),
      Layer.provideMerge(surroundings(this.#world, this.machine, this.#cluster, {}))
    )
    this.#world.on(this.machine, () => void Effect.runFork(Effect.provide(work, layer)))
  }
}
