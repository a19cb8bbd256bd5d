/**
 * Enforces limits across all replicas of a service: a number of units per time window, or a number of units in use at the same time.
 *
 * A replica leases a few units at a time from a shared ledger and hands them out by itself, so taking a leased unit costs no
 * request. If the ledger cannot be read or written, a replica uses its leased units until the lease ends, after some seconds. From then
 * on requests wait, so that the limit is not exceeded, and fail with `LimitUnknown`: a limit counts as reached only if its ledger says so.
 *
 * Only a limit without a window can be exceeded for a while: a replica that is cut off for longer than its lease finishes the
 * requests it has started.
 */
import { Clock, Context, Effect, Exit, FiberSet, Layer, Option, Random, Schema, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Ledger from "./Ledger.ts"
import type { Limit, Taken, UnitsMissing } from "../bounds/Limit.ts"
import { LimitStore } from "./LimitStore.ts"
import {
  type Draft,
  limitReached,
  type LimitState,
  limitUnknown,
  ReplicaLease,
  unknownRetryMs,
  type Waiter
} from "./ReplicaLease.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Ledger.Ledger))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Ledger.Ledger))

/** How often to try to make an entry, if other replicas write at the same time, before a longer pause. */
const maxTries = 8

/** Maximum number of unconfirmed entries to remember. If a forgotten entry was made, its units count as used. */
const maxUnconfirmed = 16

/** How long a try may take before requests count as undecided that end without units meanwhile, in milliseconds. */
const slowTryMs = 250

/** Stands for the revision of a created ledger, which is unknown until the next read. */
const firstRevision = -1

/** This replica's lease of one limit, and its entries. */
interface Account {
  readonly key: string
  readonly lease: ReplicaLease
  /** See `Limit`. */
  readonly isConsumed: boolean
  /** The ledger as last written by this replica. */
  written: { readonly ledger: Ledger.Ledger; readonly revision: number } | undefined
  /** Whether no other replica wrote between the last two entries, so that probably none has written since. */
  isSoleWriter: boolean
  /** Entries that may or may not have been made, each with the revision before it. */
  unconfirmed: ReadonlyArray<{ readonly draft: Draft; readonly revision: number | undefined }>
  failures: number
  /** Whether the last try to make an entry told what the ledger has for waiting requests; and the same of the current try. */
  isKnown: boolean
  isTold: boolean
  /** When the current try to make an entry began. */
  triedAt: number | undefined
  /** Whether a fiber maintains this account, and when that fiber wakes up. */
  isMaintained: boolean
  wakesAt: number
  wake: () => void
}

export class Limits extends Context.Service<Limits, {
  /** Takes leased units, at most the whole limit; `undefined` if the caller would have to wait. */
  readonly tryTake: (limit: Limit, units: number) => Taken | undefined
  /**
   * Waits for units, first come, first served among replicas and within each. Fails immediately if they cannot be available
   * before `until` (epoch milliseconds). The wait is interruptible even in an uninterruptible region.
   */
  readonly take: (limit: Limit, units: number, until: number) => Effect.Effect<Taken, UnitsMissing>
  /** The state of a limit as far as this replica knows. */
  readonly state: (limit: Limit) => LimitState
}>()("shared/limits/Limits") {
  static readonly layerNoDeps: Layer.Layer<Limits, never, LimitStore> = Layer.effect(Limits, Effect.suspend(() => make))
  static readonly layerKeys = Limits.layerNoDeps.pipe(Layer.provide(LimitStore.layerKeys))
  static readonly layerProviders = Limits.layerNoDeps.pipe(Layer.provide(LimitStore.layerProviders))
  static readonly layerMemory = Limits.layerNoDeps.pipe(Layer.provide(LimitStore.layerMemory))
}

const make: Effect.Effect<Limits["Service"], never, LimitStore | Scope.Scope> = Effect.gen(function*() {
  const store = yield* LimitStore
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const replica = randomUUID().slice(0, 8)
  /** How many entries this replica has drafted, for all limits: a number must not return with a forgotten account. */
  let drafted = 0
  /**
   * By key. A limit that is not in use is forgotten, since there may be more keys than fit into memory: an account is held by the
   * fiber that maintains it, and by the units that may still be settled.
   */
  const accounts = new Map<string, WeakRef<Account>>()
  const forgotten = new FinalizationRegistry<string>((key) => {
    // a new account may have taken its place
    if (accounts.get(key)?.deref() === undefined) accounts.delete(key)
  })

  const read = Effect.fnUntraced(function*(account: Account) {
    const found = Option.getOrUndefined(yield* store.getRevision(account.key))
    const decoded = found === undefined ? Option.some(Ledger.empty) : decode(found.value)
    if (Option.isNone(decoded)) {
      yield* Effect.logWarning("a limit's ledger is not readable and starts empty", { key: account.key })
    }
    const ledger = Option.getOrElse(decoded, () => Ledger.empty)
    const revision = found?.revision
    const made = account.unconfirmed.find(({ draft }) => draft.entry.entry === ledger.held[replica]?.entry)
    // entries based on another revision can no longer be made
    account.unconfirmed = account.unconfirmed.filter((one) => one.revision === revision)
    if (made !== undefined) account.lease.accept(made.draft)
    account.isSoleWriter = account.written !== undefined && account.written.revision === revision
    return { ledger, revision }
  })

  /** Returns the new revision; `undefined` if another entry came first. */
  const write = (account: Account, value: string, revision: number | undefined) =>
    revision === undefined
      ? Effect.map(store.create(account.key, value), (created) => created ? firstRevision : undefined)
      : Effect.map(store.update(account.key, value, revision), Option.getOrUndefined)

  /** Makes the next entry. `false` if other replicas' entries came first `maxTries` times. */
  const enter = Effect.fnUntraced(function*(account: Account): Effect.fn.Return<boolean, JetStreamFailed> {
    const { lease } = account
    for (let tries = 0; tries < maxTries; tries++) {
      const remembered = account.isSoleWriter ? account.written : undefined
      const { ledger, revision } = remembered ?? (yield* read(account))
      const draft = lease.draft(ledger, ++drafted)
      // a ledger without free units is the reason to refuse requests even if the entry cannot be made
      account.isTold = draft.entered.granted === 0 && draft.entry.needs.length > 0
      if (!draft.isNeeded) {
        account.isSoleWriter = false
        // without a write, only a read shows whether another replica has returned units
        if (remembered !== undefined) continue
        account.isTold = true
        lease.observe(draft)
        return true
      }
      const before = account.unconfirmed
      account.unconfirmed = [...before.slice(1 - maxUnconfirmed), { draft, revision }]
      const { isSoleWriter } = account
      // if no answer comes, the ledger must be read before the next write
      account.isSoleWriter = false
      const next = yield* write(account, encode(draft.entered.ledger), revision)
      account.isSoleWriter = isSoleWriter && next !== undefined
      if (next !== undefined) {
        account.unconfirmed = []
        account.written = { ledger: draft.entered.ledger, revision: next }
        account.isTold = true
        lease.accept(draft)
        return true
      }
      account.unconfirmed = before
      yield* Effect.sleep((yield* Random.next) * 2 ** tries)
    }
    return false
  })

  const backOff = Effect.fnUntraced(function*(account: Account, detail: string) {
    account.failures++
    if (account.failures === 1) {
      yield* Effect.logWarning("a limit's ledger cannot be read or written", { key: account.key, detail })
    }
    Metrics.update(Metrics.jetStreamErrors("limits"), 1)
    const longest = Math.min(unknownRetryMs, 50 * 2 ** account.failures)
    yield* Effect.sleep(longest * (0.5 + (yield* Random.next) / 2))
  })

  /** Makes entries as long as there is something to report or to request. */
  const maintain = Effect.fnUntraced(function*(account: Account) {
    for (;;) {
      const { dueMs } = account.lease
      if (dueMs === undefined) {
        account.isMaintained = false
        account.isSoleWriter = false
        account.written = undefined
        return
      }
      if (dueMs > 0) {
        account.wakesAt = now() + dueMs
        const woken = Effect.callback<void>((resume) => {
          account.wake = () => resume(Effect.void)
        })
        // jitter, so that replicas do not write at the same time
        const duration = dueMs + (yield* Random.next) * Math.min(25, dueMs / 4)
        yield* Effect.timeoutOrElse(woken, { duration, orElse: () => Effect.void })
        continue
      }
      account.wakesAt = Number.NEGATIVE_INFINITY
      account.isTold = false
      account.triedAt = now()
      const detail = yield* enter(account).pipe(
        Effect.map((made) => made ? undefined : "other replicas write at the same time"),
        Effect.catch(({ detail }) => Effect.succeed(detail))
      )
      account.triedAt = undefined
      account.isKnown = account.isTold
      if (detail === undefined) account.failures = 0
      else yield* backOff(account, detail)
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach([...accounts.values()], (reference) => {
      const account = reference.deref()
      if (account === undefined) return Effect.void
      account.lease.close()
      return account.lease.isRecorded || account.isConsumed ? Effect.void : enter(account)
    }, { concurrency: "unbounded", discard: true }).pipe(Effect.timeout(unknownRetryMs), Effect.ignore)
  )
  // made after the finalizer above, so its fibers end before that runs
  const fork = yield* FiberSet.makeRuntime<never, void, never>()

  const accountOf = (limit: Limit): Account => {
    const known = accounts.get(limit.key)?.deref()
    if (known !== undefined) {
      known.lease.setTerms(limit)
      return known
    }
    const account: Account = {
      key: limit.key,
      isConsumed: limit.isConsumed === true,
      lease: new ReplicaLease(replica, limit, now, () => requestEntry(account)),
      written: undefined,
      isSoleWriter: false,
      unconfirmed: [],
      failures: 0,
      isKnown: false,
      isTold: false,
      triedAt: undefined,
      isMaintained: false,
      wakesAt: Number.NEGATIVE_INFINITY,
      wake: () => undefined
    }
    accounts.set(limit.key, new WeakRef(account))
    forgotten.register(account, limit.key)
    return account
  }

  const requestEntry = (account: Account): void => {
    if (!account.isMaintained) {
      account.isMaintained = true
      fork(maintain(account))
    } else if (now() + (account.lease.dueMs ?? Number.POSITIVE_INFINITY) < account.wakesAt) account.wake()
  }

  /** Why a request has waited in vain. */
  const missing = ({ isKnown, lease, triedAt }: Account): UnitsMissing => {
    const isSilent = triedAt !== undefined && now() - triedAt >= slowTryMs
    return isKnown && !isSilent ? limitReached(lease.retryAfterMs) : limitUnknown
  }

  return Limits.of({
    tryTake: (limit, units) => accountOf(limit).lease.take(Math.min(units, limit.limit)),
    state: (limit) => accountOf(limit).lease.state,
    take: (limit, units, until) =>
      Effect.suspend(() => {
        const account = accountOf(limit)
        const { lease } = account
        const wanted = Math.min(units, limit.limit)
        const leased = lease.take(wanted)
        if (leased !== undefined) return Effect.succeed(leased)
        const refusal = lease.isCrowded ? missing(account) : lease.refusal(wanted, until)
        if (refusal !== undefined) return Effect.fail(refusal)
        let taken: Taken | undefined
        return Effect.callback<Taken, UnitsMissing>((resume) => {
          const waiter: Waiter = {
            units: wanted,
            until,
            resume: (result) => {
              if ("_tag" in result) return resume(Effect.fail(result))
              taken = result
              resume(Effect.succeed(result))
            }
          }
          lease.enqueue(waiter)
          return Effect.sync(() => lease.leave(waiter))
        }).pipe(
          Effect.timeoutOrElse({
            duration: Math.max(0, until - now()),
            orElse: () => Effect.fail(missing(account))
          }),
          Effect.interruptible,
          // returns units that were granted too late to be used
          Effect.onExit((exit) => Effect.sync(() => Exit.isFailure(exit) ? taken?.settle(0) : undefined))
        )
      })
  })
})
