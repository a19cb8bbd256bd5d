/** Announcements about pools: a worker's slots, and the taken slots and waiting jobs of tenants at an ingress. */
import { Option, Schema } from "effect"
import { PoolName, type Workload, workloads } from "../../contract/Operation.ts"
import { PriorityClass } from "../../contract/PriorityClass.ts"
import type { TenantOccupancy } from "./PoolOccupancy.ts"

/** An ingress's announcement about one pool. */
export interface PoolAnnouncement {
  readonly workload: Workload
  readonly pool: string
  readonly tenants: ReadonlyArray<TenantOccupancy>
}

const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

/** `TenantOccupancy` as a tuple, which is smaller: there may be many tenants. */
const Tenant = Schema.Tuple([
  Schema.String,
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1)),
  PriorityClass,
  Count,
  Count
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
    tenants.map(({ priority, taken, tenant, waiting, weight }) => [tenant, weight, priority, taken, waiting] as const)
  ])))

/** `undefined` if the payload is not of this version. */
export const decodeOccupancy = (payload: string): ReadonlyArray<PoolAnnouncement> | undefined =>
  Option.getOrUndefined(Option.map(decode(payload), (pools) =>
    pools.map(([workload, pool, tenants]) => ({
      workload,
      pool,
      tenants: tenants.map(([tenant, weight, priority, taken, waiting]) => ({
        tenant,
        weight,
        priority,
        taken,
        waiting
      }))
    }))))

export const encodeSlots = (slots: number): Uint8Array => Buffer.from(String(slots))

/** `undefined` if the payload is not of this version. */
export const decodeSlots = (payload: string): number | undefined =>
  payload === "" ? undefined : Option.getOrUndefined(decodeCount(Number(payload)))
