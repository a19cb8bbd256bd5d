/** Announcements about pools: a worker's slots, and the taken slots and waiting jobs of tenants at an ingress. */
import { Option, Schema } from "effect"
import { PoolName, type Workload, workloads } from "../../contract/Operation.ts"
import { PriorityClass } from "../../contract/PriorityClass.ts"
import type { TenantOccupancy } from "./TenantUse.ts"

/** An ingress's announcement about one pool. */
export interface PoolAnnouncement {
  readonly workload: Workload
  readonly pool: string
  readonly tenants: ReadonlyArray<TenantOccupancy>
}

const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

/** `TenantOccupancy` as a tuple, which is smaller: there may be many tenants. Its totals are the sums of its models. */
const Tenant = Schema.Tuple([
  Schema.String,
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1)),
  PriorityClass,
  Schema.Array(Schema.Tuple([Schema.String, Count, Count]))
])

/** Workload, pool and its tenants. */
const Announcement = Schema.fromJsonString(
  Schema.Array(Schema.Tuple([Schema.Literals(workloads), PoolName, Schema.Array(Tenant)]))
)

const encode = Schema.encodeSync(Announcement)
const decode = Schema.decodeUnknownOption(Announcement)
const decodeCount = Schema.decodeUnknownOption(Count)

export const encodeOccupancy = (pools: ReadonlyArray<PoolAnnouncement>): Uint8Array =>
  Buffer.from(encode(pools.map(({ pool, tenants, workload }) => [
    workload,
    pool,
    tenants.map(({ models, priority, tenant, weight }) =>
      [tenant, weight, priority, models.map(({ model, taken, waiting }) => [model, taken, waiting] as const)] as const
    )
  ])))

/** `undefined` if the payload is not of this version. */
export const decodeOccupancy = (payload: string): ReadonlyArray<PoolAnnouncement> | undefined =>
  Option.getOrUndefined(Option.map(decode(payload), (pools) =>
    pools.map(([workload, pool, tenants]) => ({
      workload,
      pool,
      tenants: tenants.map(([tenant, weight, priority, models]) => ({
        tenant,
        weight,
        priority,
        taken: models.reduce((sum, [, taken]) => sum + taken, 0),
        waiting: models.reduce((sum, [, , waiting]) => sum + waiting, 0),
        models: models.map(([model, taken, waiting]) => ({ model, taken, waiting }))
      }))
    }))))

export const encodeSlots = (slots: number): Uint8Array => Buffer.from(String(slots))

/** `undefined` if the payload is not of this version. */
export const decodeSlots = (payload: string): number | undefined =>
  payload === "" ? undefined : Option.getOrUndefined(decodeCount(Number(payload)))
