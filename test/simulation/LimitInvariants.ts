/** Invariants of limits: they hold across all ingresses, leased units return, and ingress knows the keys as they are stored. */
import { Effect, Option, Schema } from "effect"
import { Ledger } from "../../shared/limits/Ledger.ts"
import type { Client } from "./gateway/Client.ts"
import type { KnownKey } from "./gateway/Keys.ts"
import { endOf, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"
import { epochMs } from "./world/Interposition.ts"
import { type Check, isTouched, named, type Violation } from "./Violation.ts"

/** The kinds of limits in `Admission`, with their fields in a key. */
const kinds = [
  { kind: "concurrent", field: "concurrentRequests" },
  { kind: "requests", field: "requestsPerMinute" },
  { kind: "tokens", field: "tokensPerMinute" }
] as const
type Kind = typeof kinds[number]["kind"]

/** A limit of a key in this simulation. */
interface KeyLimit {
  readonly key: KnownKey
  readonly kind: Kind
  readonly limit: number
  readonly windowMs: number
  readonly clients: ReadonlyArray<Client>
}

function* limitsOf({ administrator, clients, scenario: { limits } }: Ended): Generator<KeyLimit> {
  if (limits === undefined) return
  for (const key of administrator.keys.values()) {
    for (const { field, kind } of kinds) {
      const limit = key.plan[field]
      if (limit === null) continue
      const windowMs = kind === "concurrent" ? 0 : limits.windowMs
      yield { key, kind, limit, windowMs, clients: clients.filter((client) => client.key === key) }
    }
  }
}

/** The length of a lease. More requests than the limit run at once only if a replica is cut off for longer: it finishes its requests. */
const leaseMs = 15_000
const renewMs = 5_000

const mayOutlastLease = (scenario: Ended["scenario"], at: number): boolean => {
  const recent = scenario.faults.filter((fault) => fault.at <= at && endOf(scenario, fault) >= at - 2 * leaseMs)
  return recent.reduce((sum, fault) => sum + endOf(scenario, fault) - fault.at, 0) > leaseMs - renewMs
}

/** No window contains more units than the limit, and no more requests run at once than allowed. */
function* limitsHold(ended: Ended): Generator<Violation> {
  const { scenario } = ended
  // leases are measured by the clocks of ingresses
  if (scenario.faults.some(({ kind }) => kind === "clock of ingress")) return
  for (const { clients, key, kind, limit, windowMs } of limitsOf(ended)) {
    const admitted = clients
      .flatMap((client) => client.admittedAt === undefined ? [] : [{ client, at: client.admittedAt }])
      .toSorted((a, b) => a.at - b.at)
    for (const { at, client } of admitted) {
      const counted = admitted.filter((other) =>
        other.at <= at && (windowMs > 0
          ? other.at > at - windowMs
          : (other.client.settledAt ?? Number.POSITIVE_INFINITY) > at)
      )
      const units = kind === "tokens"
        ? counted.reduce((sum, other) => sum + other.client.tokens, 0)
        : counted.length
      if (units <= limit || (windowMs === 0 && mayOutlastLease(scenario, at))) continue
      yield named("limits hold", client, `is number ${units} of ${limit} ${kind} of ${key.plan.tenant}`)
      break
    }
  }
}

/** How long a request waits for a limit, and how long a returned unit may take to reach another replica, in milliseconds. */
const waitMs = 1_000
/** How long after the warm-up a new cluster has a leader for each stream, in milliseconds. */
const startMs = 2_000
const returnMs = 1_500

/** The units that each of the other replicas may have leased ahead. */
const aheadOf = (limit: number, replicas: number): number => (replicas - 1) * Math.max(1, Math.floor(limit / 20))

/** A request within its key's limits is not refused if nothing has failed and no tasks of the key take units, too. */
function* notRefusedWithin(ended: Ended): Generator<Violation> {
  const { scenario } = ended
  if (scenario.answers !== undefined) return
  for (const { clients, kind, limit, windowMs } of limitsOf(ended)) {
    for (const client of clients) {
      const { endedAt = 0, refusedBy } = client
      if (refusedBy !== kind || isTouched(scenario, client.request.at - windowMs, endedAt)) continue
      // a new cluster elects its leaders
      if (scenario.servers > 1 && client.request.at < warmUpMs + startMs) continue
      const from = endedAt - windowMs - waitMs - returnMs
      const rivals = clients.filter(({ request, settledAt = Number.POSITIVE_INFINITY }) =>
        request.at <= endedAt && (windowMs > 0 ? request.at > from : settledAt > from)
      )
      const units = kind === "tokens" ? rivals.reduce((sum, { demand }) => sum + demand, 0) : rivals.length
      if (units + aheadOf(limit, scenario.ingresses) > limit) continue
      yield named("not refused within limits", client, `${units} of ${limit} ${kind} were asked for`)
    }
  }
}

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Ledger))

/** No living replica holds units of a limit, and all units are free. */
function* leasesReturn(ended: Ended): Generator<Violation> {
  const { cluster, ingresses, world } = ended
  const isLost = world.trace.lines.some(({ what }) => what.startsWith("clock of ingress"))
  for (const { key, kind, limit, windowMs } of limitsOf(ended)) {
    const name = `${key.id}.${kind}`
    for (const { admitting, machine } of ingresses) {
      if (admitting === undefined || !machine.isAlive) continue
      const { remaining } = world.as(machine, () => admitting.limits.state({ key: name, limit, windowMs }))
      if (remaining < limit && !isLost) {
        yield { invariant: "leases return", detail: `${machine.name} sees ${remaining} of ${limit} ${name}` }
      }
    }
    const stored = [...cluster.jetStream.streams.get("KV_KEY_LIMITS")?.messages.values() ?? []]
      .findLast(({ message }) => message.subject === `$KV.KEY_LIMITS.${name}`)
    if (stored === undefined || isLost) continue
    const { held } = decode(stored.message.payload.toString())
    for (const [replica, { units, until }] of Object.entries(held)) {
      const isValid = epochMs + world.now < until + windowMs + returnMs
      if (units > 0 && isValid) {
        yield { invariant: "leases return", detail: `replica ${replica} holds ${units} of ${limit} ${name}` }
      }
    }
  }
}

/** Every ingress knows each key as it was stored last. */
function* keysAreFollowed({ administrator, ingresses, world }: Ended): Generator<Violation> {
  for (const { admitting, machine } of ingresses) {
    if (admitting === undefined || !machine.isAlive) continue
    for (const { plan: { tenant }, secret, weight } of administrator.keys.values()) {
      const found = world.as(machine, () => Effect.runSync(Effect.option(admitting.keys.authenticate(secret))))
      const known = Option.getOrUndefined(found)?.weight
      if (known !== weight) {
        yield {
          invariant: "keys are followed",
          detail: `${machine.name} has weight ${known}, not ${weight}, of ${tenant}`
        }
      }
    }
  }
}

export const checks: ReadonlyArray<Check> = [limitsHold, notRefusedWithin, leasesReturn, keysAreFollowed]
