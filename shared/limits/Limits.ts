/**
 * Limits that hold over all replicas of a service together: so many units within any window, or so many at once.
 *
 * A replica takes a few units at a time from a ledger that all of them share, and hands them out by itself: a unit that is
 * in hand costs no more than a look at a number. Where the ledger is out of reach a replica uses what it has in hand, for
 * the seconds for which it has it; then it makes wait, and never lets more through than the limit.
 *
 * Only what counts until it is given back can be over its limit for a while: where a replica is cut off for longer than it
 * may keep what it has, it goes on with what it had begun.
 */
import { Clock, Context, Effect, Exit, FiberSet, Layer, Option, Random, Schema, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import * as Ledger from "./Ledger.ts"
import { LimitStore } from "./LimitStore.ts"
import { type Draft, LimitReached, type LimitState, Share, type Taken, type Waiter } from "./Share.ts"

export interface Limit extends Ledger.Terms {
  /** What is limited, the same in every replica: letters, digits and `-_=/.`. */
  readonly key: string
}

const encode = Schema.encodeSync(Schema.fromJsonString(Ledger.Ledger))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Ledger.Ledger))

/** Others may write at the same moment. After so many losses in a row a replica steps back for longer. */
const maxTries = 8

/** How many entries of unknown fate are remembered. What is forgotten counts as used, if it was made. */
const maxDoubtful = 16

/** The longest pause before a ledger that is out of reach is tried again, in milliseconds. */
const maxBackOffMs = 2_000

/** Nobody knows the revision of what was just created; it is read the next time. */
const firstRevision = -1

/** A share and the entries that are made for it. */
interface Account {
  readonly key: string
  readonly share: Share
  /** The ledger as this replica has last written it. */
  written: { readonly ledger: Ledger.Ledger; readonly revision: number } | undefined
  /** Nobody else has written between the last two entries, and so perhaps not since. */
  isAlone: boolean
  /** Entries of which it is not known whether they were made, and the revision that they were to follow. */
  doubtful: ReadonlyArray<{ readonly draft: Draft; readonly revision: number | undefined }>
  failures: number
  /** Whether a fiber looks after it, and when it will next. */
  isTended: boolean
  wakesAt: number
  wake: () => void
}

export class Limits extends Context.Service<Limits, {
  /** Units that are in hand; `undefined` where they would have to be waited for. More than the limit are taken for the limit. */
  readonly tryTake: (limit: Limit, units: number) => Taken | undefined
  /**
   * Waits for its turn, in the order in which replicas and those in them come. Fails at once where its turn cannot come
   * before `until` (epoch milliseconds). Where it must wait it can be interrupted, whatever the region.
   */
  readonly take: (limit: Limit, units: number, until: number) => Effect.Effect<Taken, LimitReached>
  /** How a limit stands, as far as this replica knows. */
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
  const accounts = new Map<string, Account>()

  const read = Effect.fnUntraced(function*(account: Account) {
    const found = Option.getOrUndefined(yield* store.getRevision(account.key))
    const ledger = found === undefined ? Ledger.empty : Option.getOrElse(decode(found.value), () => Ledger.empty)
    const revision = found?.revision
    const made = account.doubtful.find(({ draft }) => draft.entry.entry === ledger.held[replica]?.entry)
    // those that were to follow another revision come too late for ever
    account.doubtful = account.doubtful.filter((doubt) => doubt.revision === revision)
    if (made !== undefined) account.share.accept(made.draft)
    account.isAlone = account.written !== undefined && account.written.revision === revision
    return { ledger, revision }
  })

  /** Returns the revision; `undefined` where another entry came first. */
  const write = (account: Account, value: string, revision: number | undefined) =>
    revision === undefined
      ? Effect.map(store.create(account.key, value), (created) => created ? firstRevision : undefined)
      : Effect.map(store.update(account.key, value, revision), Option.getOrUndefined)

  /** Makes the next entry. `false` where too many others did at the same time. */
  const enter = Effect.fnUntraced(function*(account: Account): Effect.fn.Return<boolean, JetStreamFailed> {
    const { share } = account
    for (let tries = 0; tries < maxTries; tries++) {
      const remembered = account.isAlone ? account.written : undefined
      const { ledger, revision } = remembered ?? (yield* read(account))
      const draft = share.draft(ledger)
      if (!draft.isNeeded) {
        account.isAlone = false
        // a write would have shown whether another has given something back since
        if (remembered !== undefined) continue
        share.observe(draft)
        return true
      }
      const doubts = account.doubtful
      account.doubtful = [...doubts.slice(1 - maxDoubtful), { draft, revision }]
      const { isAlone } = account
      // where no answer comes, the ledger is read before anything more is written
      account.isAlone = false
      const next = yield* write(account, encode(draft.entered.ledger), revision)
      account.isAlone = isAlone && next !== undefined
      if (next !== undefined) {
        account.doubtful = []
        account.written = { ledger: draft.entered.ledger, revision: next }
        share.accept(draft)
        return true
      }
      account.doubtful = doubts
      yield* Effect.sleep((yield* Random.next) * 2 ** tries)
    }
    return false
  })

  const backOff = Effect.fnUntraced(function*(account: Account, detail: string) {
    account.failures++
    if (account.failures === 1) {
      yield* Effect.logWarning("a limit's ledger is out of reach", { key: account.key, detail })
    }
    const longest = Math.min(maxBackOffMs, 50 * 2 ** account.failures)
    yield* Effect.sleep(longest * (0.5 + (yield* Random.next) / 2))
  })

  /** Makes entries as long as there is something to say. */
  const tend = Effect.fnUntraced(function*(account: Account) {
    for (;;) {
      const { dueMs } = account.share
      if (dueMs === undefined) {
        account.isTended = false
        account.isAlone = false
        account.written = undefined
        return
      }
      if (dueMs > 0) {
        account.wakesAt = now() + dueMs
        const woken = Effect.callback<void>((resume) => {
          account.wake = () => resume(Effect.void)
        })
        // not all replicas in the same moment
        const duration = dueMs + (yield* Random.next) * Math.min(25, dueMs / 4)
        yield* Effect.timeoutOrElse(woken, { duration, orElse: () => Effect.void })
        continue
      }
      account.wakesAt = Number.NEGATIVE_INFINITY
      const detail = yield* enter(account).pipe(
        Effect.map((made) => made ? undefined : "others write at the same time"),
        Effect.catch(({ detail }) => Effect.succeed(detail))
      )
      if (detail === undefined) account.failures = 0
      else yield* backOff(account, detail)
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach([...accounts.values()], (account) => {
      account.share.close()
      return account.share.isSilent ? Effect.void : enter(account)
    }, { concurrency: "unbounded", discard: true }).pipe(Effect.timeout(maxBackOffMs), Effect.ignore)
  )
  // ends before the above begins
  const fork = yield* FiberSet.makeRuntime<never, void, never>()

  const accountOf = (limit: Limit): Account => {
    let account = accounts.get(limit.key)
    if (account === undefined) {
      account = {
        key: limit.key,
        share: new Share(replica, limit, now, () => need(limit.key)),
        written: undefined,
        isAlone: false,
        doubtful: [],
        failures: 0,
        isTended: false,
        wakesAt: Number.NEGATIVE_INFINITY,
        wake: () => undefined
      }
      accounts.set(limit.key, account)
    } else account.share.setTerms(limit)
    return account
  }

  const need = (key: string): void => {
    const account = accounts.get(key)
    if (account === undefined) return
    if (!account.isTended) {
      account.isTended = true
      fork(tend(account))
    } else if (now() + (account.share.dueMs ?? Number.POSITIVE_INFINITY) < account.wakesAt) account.wake()
  }

  return Limits.of({
    tryTake: (limit, units) => accountOf(limit).share.take(Math.min(units, limit.limit)),
    state: (limit) => accountOf(limit).share.state,
    take: (limit, units, until) =>
      Effect.suspend(() => {
        const { share } = accountOf(limit)
        const wanted = Math.min(units, limit.limit)
        const inHand = share.take(wanted)
        if (inHand !== undefined) return Effect.succeed(inHand)
        const refusal = share.refusal(until)
        if (refusal !== undefined) return Effect.fail(refusal)
        let taken: Taken | undefined
        return Effect.callback<Taken, LimitReached>((resume) => {
          const waiter: Waiter = {
            units: wanted,
            until,
            resume: (result) => {
              if (result instanceof LimitReached) return resume(Effect.fail(result))
              taken = result
              resume(Effect.succeed(result))
            }
          }
          share.enqueue(waiter)
          return Effect.sync(() => share.leave(waiter))
        }).pipe(
          Effect.timeoutOrElse({
            duration: Math.max(0, until - now()),
            orElse: () => Effect.fail(new LimitReached(share.retryAfterMs))
          }),
          Effect.interruptible,
          // what came too late to be used
          Effect.onExit((exit) => Effect.sync(() => Exit.isFailure(exit) ? taken?.settle(0) : undefined))
        )
      })
  })
})
