/**
 * Admits requests by the models, budgets and limits of their key and the teams above it, which apply across all ingress processes.
 * Requests of a key without limits are not counted.
 */
import { Clock, Config, Context, Effect, Exit, Layer, Predicate } from "effect"
import { largestCostOf, type Price } from "../../../shared/catalogue/Price.ts"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { type Demand, Holding, limitWindowMs, type Taken, type UnitsMissing } from "../../../shared/bounds/Limit.ts"
import {
  BudgetSpent,
  type InvalidRequest,
  levelNamed,
  LimitsUnavailable,
  ModelNotAllowed,
  Unavailable
} from "../../../shared/contract/JobError.ts"
import type { Dialect, Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import { largestUsage, type TokenDemand, tokenDemand } from "../../../shared/contract/TokenEstimate.ts"
import type { Consumed } from "../../../shared/contract/Usage.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { unitsWithinMs, type Work } from "../../../shared/limits/HoldMessage.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import type { LimitState } from "../../../shared/limits/ReplicaLease.ts"
import { TeamTree } from "../../../shared/teams/TeamTree.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { steeringIn } from "../../../shared/contract/outlines/Steering.ts"
import { KeyLimitReached, limitNamed, TokensOverLimit } from "../errors/IngressError.ts"
import {
  allowsModel,
  type Budget,
  isLimited,
  type LevelLimit,
  type LevelLimits,
  type Levels,
  makeLevels,
  microsOf,
  microsPerDollar
} from "./Levels.ts"
import { ConcurrentUnit, ConcurrentUnits, type WaitingRequests } from "./ConcurrentUnits.ts"
import { limitHeaders } from "./LimitHeaders.ts"
import { makeUncounted } from "./Uncounted.ts"

/** Settles a request when it has ended. Only the first call has an effect. */
export interface Settle {
  (consumed: Consumed): void
  /** What the request holds of limits of concurrent requests. */
  readonly units?: ReadonlyArray<ConcurrentUnit>
}

export interface AdmissionRequest {
  readonly operation: Operation
  readonly model: string
  readonly decoded: RequestBody
  /** The size of the body. */
  readonly bytes: number
  /** The highest price and the longest answer of the model, if the catalogue states them. */
  readonly highestPrice?: Price | undefined
  readonly maxOutputTokens?: number | undefined
  /** Whether the work runs later. It then takes its tokens and its cost when it runs. */
  readonly isLater?: boolean
}

export interface AdmissionWork extends Pick<Work, "inBatch" | "isHoldLost" | "seconds" | "tokens"> {
  readonly highestPrice: Price | undefined
}

/** What a request has taken before its body was read. */
export class Entry {
  readonly holding: Holding<LevelLimit>
  readonly units: Units
  readonly #isConcurrent: boolean
  isAdmitted = false

  constructor(holding: Holding<LevelLimit>, units: Units, isConcurrent: boolean) {
    this.holding = holding
    this.units = units
    this.#isConcurrent = isConcurrent
  }

  hasTaken(kind: LevelLimit["kind"]): boolean {
    return kind === "requests" || (kind === "concurrent" && this.#isConcurrent)
  }

  /** Returns everything, unless the request was admitted. */
  giveBack(): void {
    if (!this.isAdmitted) this.holding.returnAll()
  }
}

/** What a request holds of limits of concurrent requests. Grows while it takes from its limits. */
type Units = Array<ConcurrentUnit<LevelLimit>>

type Kind = KeyLimitReached["limit"]
/** `Unavailable`: the key's team is not known yet. */
type NoAccess = ModelNotAllowed | BudgetSpent | Unavailable
/** The key or a team has no units left, or the gateway cannot find out. */
type NoUnits = KeyLimitReached | LimitsUnavailable
type Refusal = NoAccess | NoUnits | TokensOverLimit | InvalidRequest

export class Admission extends Context.Service<Admission, {
  /**
   * Takes what needs no body from the limits of the key and its teams, immediately or after a short wait: a request, and with
   * `isConcurrent` one of the concurrent requests. The caller must give it back if it does not admit the request; `undefined` if there
   * are no such limits.
   */
  readonly enter: (
    key: ApiKey,
    isConcurrent: boolean
  ) => Effect.Effect<Entry | undefined, NoUnits | Unavailable>
  /**
   * Takes what the request needs and has not taken yet, immediately or after a short wait. The caller must settle the request;
   * `undefined` if there are no limits.
   */
  readonly admit: (
    key: ApiKey,
    request: AdmissionRequest,
    entry?: Entry
  ) => Effect.Effect<Settle | undefined, Refusal>
  /** Whether the key may use the model, and has a budget left. */
  readonly check: (key: ApiKey, model: string) => Effect.Effect<void, NoAccess>
  /** Whether the key and its teams allow the model. */
  readonly allows: (key: ApiKey, model: string) => boolean
  /** Takes what the work of an earlier request needs, alone or as a line of a batch. */
  readonly admitWork: (
    key: ApiKey,
    work: AdmissionWork
  ) => Effect.Effect<Settle | undefined, NoUnits | Unavailable>
  /** An admitted request for the model waits for this provider, until the returned function is called. */
  readonly wait: (model: string, settle: Settle | undefined, provider: string) => () => void
  /** Makes the response headers with the tightest limits of the key and its teams; `undefined` if there are none. */
  readonly headers: (key: ApiKey, dialect: Dialect) => (() => Record<string, string>) | undefined
}>()("services/ingress/request/Admission") {
  /**
   * Reads `GATEWAY_LIMIT_WAIT_MS`, how long a request over a limit waits before it is rejected (default 1,000), and
   * `limitWindowMs`. The work of a task waits for at most `unitsWithinMs`.
   */
  static readonly layerNoDeps = Layer.effect(
    Admission,
    Effect.gen(function*() {
      const limits = yield* Limits
      const spending = yield* Spending
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const windowMs = yield* limitWindowMs
      const waitMs = yield* Config.schema(atLeast(0), "GATEWAY_LIMIT_WAIT_MS").pipe(Config.withDefault(1_000))

      const keepUntilCounted = yield* makeUncounted(spending, now)
      const levelsOf = makeLevels(yield* TeamTree, windowMs)
      const concurrent = new ConcurrentUnits()

      /** Keeps what was taken from a budget reserved until the cost of the request is counted. */
      const untilCounted = (limit: LevelLimit, taken: Taken): Taken =>
        limit.kind !== "budget" ? taken : {
          settle: (micros) => {
            taken.settle(micros)
            if (micros > 0) keepUntilCounted(taken)
          }
        }

      /** What a request has taken from a limit; `held` gets what it holds of concurrent requests. */
      const keep = (limit: LevelLimit, taken: Taken, held: Units): Taken => {
        if (limit.kind !== "concurrent") return untilCounted(limit, taken)
        const unit = taken instanceof ConcurrentUnit ? taken : concurrent.taken(limit, taken)
        held.push(unit)
        return unit
      }

      /** Waits for units. A refusal by a limit of concurrent requests says how many of them wait for a provider. */
      const takeUnits = (limit: LevelLimit, units: number, until: number): Effect.Effect<Taken, NoUnits> =>
        Effect.mapError(
          limits.take(limit, units, until),
          (missing) => refused(limit, missing, limit.kind === "concurrent" ? concurrent.waiting(limit) : undefined)
        )

      /** Waits for the missing units, for `withinMs` in all. */
      const takeRest = (holding: Holding<LevelLimit>, withinMs: number, held: Units): Effect.Effect<void, NoUnits> => {
        const until = now() + withinMs
        return holding.takeRest(({ limit, units }) =>
          Effect.map(takeUnits(limit, units, until), (taken) => keep(limit, taken, held))
        )
      }

      /** Takes units that are there. `extra` may let a request go on without a unit of concurrent requests. */
      const tryTake =
        (held: Units, extra: (limit: LevelLimit) => Taken | undefined) =>
        ({ limit, units }: Demand<LevelLimit>): Taken | undefined => {
          const taken = limits.tryTake(limit, units) ?? (limit.kind === "concurrent" ? extra(limit) : undefined)
          return taken && keep(limit, taken, held)
        }

      /** Waits for what is missing, or returns everything: also if the client disconnects. */
      const takeAll = (holding: Holding<LevelLimit>, withinMs: number, held: Units): Effect.Effect<void, NoUnits> =>
        Effect.onExitPrimitive(Effect.uninterruptible(takeRest(holding, withinMs, held)), (exit) => {
          if (Exit.isFailure(exit)) holding.returnAll()
          return undefined
        })

      /** Takes the units without which a request has entered: its model, which is known by now, is not free. */
      const takeSkipped = (held: Units): Effect.Effect<void, NoUnits> => {
        const until = now() + waitMs
        const skipped = held.filter(({ isExtra }) => isExtra)
        return Effect.uninterruptible(
          Effect.forEach(
            skipped,
            (unit) => Effect.map(takeUnits(unit.limit, 1, until), (taken) => unit.become(taken)),
            { discard: true }
          )
        )
      }

      const take = (
        all: LevelLimits,
        tokens: number,
        cost: Cost | undefined,
        { counted = 0, entry, model, withinMs = waitMs }: TakeOptions = {}
      ): Effect.Effect<Settle | undefined, NoUnits> => {
        const demands: Array<Demand<LevelLimit>> = all.map((limit) => ({
          kind: limit.kind,
          limit,
          units: limit.kind === "tokens" ? tokens - counted : 1
        }))
        for (const budget of cost?.budgets ?? []) {
          demands.push({ kind: "budget", limit: budget.restAfter(spending.of(budget.id)), units: cost?.micros ?? 0 })
        }
        if (demands.length === 0 && entry === undefined) return noSettle
        const holding = entry?.holding ?? new Holding<LevelLimit>([])
        holding.demand(demands)
        const held = entry?.units ?? []
        const settle = (consumed: Consumed) => {
          if (consumed === "nothing") return holding.settle(0, 0)
          holding.settle(
            consumed && Math.max(0, consumed.inputTokens + consumed.outputTokens - counted),
            consumed && cost && microsOf(largestCostOf(cost.price, consumed))
          )
        }
        const admitted = (): Settle => {
          if (entry !== undefined) entry.isAdmitted = true
          return Object.assign(settle, { units: held })
        }
        const extra = (limit: LevelLimit) => model === undefined ? undefined : concurrent.extra(limit, model)
        return holding.takeAvailable(tryTake(held, extra))
          ? Effect.succeed(admitted())
          : Effect.map(takeAll(holding, withinMs, held), admitted)
      }

      /** The limit of this kind with the fewest units left. */
      const tightest = (all: LevelLimits, kind: Kind) => {
        let least: LimitState & { readonly limit: number } | undefined
        for (const limit of all) {
          if (limit.kind !== kind) continue
          const state = limits.state(limit)
          if (least === undefined || state.remaining < least.remaining) least = { limit: limit.limit, ...state }
        }
        return least
      }

      const refusalOf = (key: ApiKey, levels: Levels, model: string): NoAccess | undefined => {
        if (!allowsModel(key, levels, model)) return new ModelNotAllowed({ model })
        for (const budget of levels.budgets) {
          const { id, team, usd } = budget
          if (budget.restAfter(spending.of(id)).limit > 0) continue
          return new BudgetSpent({
            budgetUsd: usd,
            retryAfterMs: spending.resetMs(),
            ...(team === undefined ? {} : { team })
          })
        }
        return undefined
      }

      /** Teams whose absence was logged. */
      const missed = new Set<string | null>()
      const refuseTeam = ({ id, team }: ApiKey): Effect.Effect<never, Unavailable> =>
        Effect.suspend(() => {
          const refusal = Effect.fail(teamUnknown)
          if (missed.has(team)) return refusal
          missed.add(team)
          const message =
            "requests get 503: the team of their key or token, or one above it, does not exist or is not known yet"
          return Effect.andThen(Effect.logWarning(message, { team, id }), refusal)
        })

      return Admission.of({
        enter: (key, isConcurrent) => {
          const levels = levelsOf(key)
          if (levels === undefined) return refuseTeam(key)
          const all = isConcurrent ? levels.atHead : levels.requests
          if (all.length === 0) return Effect.undefined
          const holding = new Holding(all.map((limit) => ({ kind: limit.kind, limit, units: 1 })))
          const held: Units = []
          const entry = new Entry(holding, held, isConcurrent)
          return holding.takeAvailable(tryTake(held, (limit) => concurrent.extra(limit, undefined)))
            ? Effect.succeed(entry)
            : Effect.as(takeAll(holding, waitMs, held), entry)
        },
        admit: (key, request, entry) => {
          const levels = levelsOf(key)
          if (levels === undefined) return refuseTeam(key)
          const refusal = refusalOf(key, levels, request.model)
          if (refusal !== undefined) return Effect.fail(refusal)
          const steering = isLimited(key, levels) ? steeringIn(request.decoded) : undefined
          if (steering !== undefined) return Effect.fail(steering)
          const { budgets, limits } = levels
          if (limits.length === 0 && budgets.length === 0 && entry === undefined) return noSettle
          const demand = demandOf(request)
          const excess = excessOf(limits, demand)
          if (excess !== undefined) return Effect.fail(excess)
          const isLater = request.isLater === true
          const rest = (isLater ? levels.requests : limits).filter(({ kind }) => entry?.hasTaken(kind) !== true)
          const cost = isLater || budgets.length === 0 ? undefined : costOf(budgets, request)
          const taken = () => take(rest, demand.tokens, cost, { entry, model: request.model })
          const mustTake = entry?.units.some(({ isExtra }) => isExtra) === true && !concurrent.isFree(request.model)
          return mustTake ? Effect.flatMap(takeSkipped(entry.units), taken) : taken()
        },
        check: (key, model) => {
          const levels = levelsOf(key)
          if (levels === undefined) return refuseTeam(key)
          const refusal = refusalOf(key, levels, model)
          return refusal === undefined ? Effect.void : Effect.fail(refusal)
        },
        allows: (key, model) => {
          const levels = levelsOf(key)
          return levels !== undefined && allowsModel(key, levels, model)
        },
        admitWork: (key, work) => {
          const levels = levelsOf(key)
          if (levels === undefined) return refuseTeam(key)
          const cost = costOfWork(levels.budgets, work)
          const withinMs = Math.min(waitMs, unitsWithinMs)
          if (work.seconds !== undefined) return take(noLimits, 0, cost, { withinMs })
          const all = work.inBatch === true
            ? [batchLimitOf(key), ...levels.limits.filter(({ kind }) => kind === "tokens")]
            : levels.limits.filter(({ kind }) => kind !== "requests")
          return take(all, work.tokens, cost, { withinMs, counted: work.isHoldLost === true ? work.tokens : 0 })
        },
        wait: (model, settle, provider) => concurrent.wait(model, settle?.units ?? [], provider),
        headers: (key, dialect) => {
          const all = levelsOf(key)?.limits ?? []
          if (all.length === 0) return undefined
          return () =>
            limitHeaders({ requests: tightest(all, "requests"), tokens: tightest(all, "tokens") }, dialect, now())
        }
      })
    })
  )
  static readonly layer = this.layerNoDeps.pipe(Layer.provide(TeamTree.layer))
}

const refused = (
  { kind, limit, team }: LevelLimit,
  { _tag, retryAfterMs }: UnitsMissing,
  waiting: WaitingRequests | undefined
): NoUnits => {
  const max = kind === "budget" ? limit / microsPerDollar : limit
  return _tag === "LimitUnknown"
    ? new LimitsUnavailable({ limit: `${levelNamed(team)} has ${limitNamed(kind, max)}`, retryAfterMs })
    : new KeyLimitReached({
      ...{ limit: kind, max, retryAfterMs },
      ...(team === undefined ? {} : { team }),
      ...(waiting === undefined ? {} : { waiting })
    })
}

interface TakeOptions {
  /** How long to wait for units, in milliseconds. Default: as long as requests wait. */
  readonly withinMs?: number
  /** How many of the tokens count already. */
  readonly counted?: number
  /** What the request has taken already. */
  readonly entry?: Entry | undefined
  /** The model of a request that may go on without a unit of concurrent requests. */
  readonly model?: string
}

const noLimits: LevelLimits = []

/** What a request takes from budgets. */
interface Cost {
  readonly budgets: ReadonlyArray<Budget>
  readonly price: Price
  readonly micros: number
}

/** `undefined` for a model without a price. */
const costOf = (budgets: ReadonlyArray<Budget>, request: AdmissionRequest): Cost | undefined => {
  const { bytes, highestPrice: price, maxOutputTokens, operation } = request
  if (price === undefined) return undefined
  const usage = largestUsage(operation, bytes, fieldOf(request), maxOutputTokens)
  return { budgets, price, micros: microsOf(operation.isFree === true ? 0 : largestCostOf(price, usage)) }
}

/** The cost of work without its request: the tokens at the higher price of input and output, and one picture or the seconds. */
const costOfWork = (
  budgets: ReadonlyArray<Budget>,
  { highestPrice: price, seconds, tokens }: AdmissionWork
): Cost | undefined => {
  if (price === undefined || budgets.length === 0) return undefined
  const all = [{ inputTokens: tokens, outputTokens: 0 }, { inputTokens: 0, outputTokens: tokens }]
  const costs = all.map((usage) =>
    largestCostOf(price, { ...usage, ...(seconds === undefined ? { images: 1 } : { seconds }) })
  )
  return { budgets, price, micros: microsOf(Math.max(...costs)) }
}

/** For a key whose team is not in the copy of the teams yet. */
const teamUnknown = Unavailable.briefly()

/** The limit of concurrent batch lines, which replaces that of concurrent requests. */
const batchLimitOf = ({ batchConcurrency, id }: ApiKey): LevelLimit => ({
  kind: "concurrent",
  key: `${id}.batch`,
  limit: batchConcurrency,
  windowMs: 0
})

/**
 * The error of a request that states more tokens than a limit. Estimates may be too high, so a request whose
 * estimate exceeds the limit reserves the whole limit instead.
 */
const excessOf = (limits: LevelLimits, { stated }: TokenDemand): TokensOverLimit | undefined => {
  if (stated === undefined) return undefined
  const limit = limits.find(({ kind, limit }) => kind === "tokens" && stated.tokens > limit)
  if (limit === undefined) return undefined
  return new TokensOverLimit({ ...stated, max: limit.limit, ...(limit.team === undefined ? {} : { team: limit.team }) })
}

/** For a key without limits. */
const noSettle = Effect.succeed(undefined)

/** The tokens that a request may use. */
export const demandOf = (request: AdmissionRequest): TokenDemand =>
  tokenDemand(request.operation, request.bytes, fieldOf(request))

const fieldOf = ({ decoded }: AdmissionRequest) => (name: string): unknown =>
  Predicate.hasProperty(decoded, name) ? decoded[name] : undefined
