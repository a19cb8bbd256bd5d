/** How ingress admits requests by the limits, models and budgets of their key and the teams above it. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, DateTime, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Admission, type AdmissionRequest, type AdmissionWork } from "../../../services/ingress/request/Admission.ts"
import { operationNamed } from "../../../shared/contract/operations/operations.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { defaults as keyDefaults } from "../../../shared/keys/KeySettings.ts"
import { answerWithinMs } from "../../../shared/limits/HoldMessage.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { LimitStore } from "../../../shared/limits/LimitStore.ts"
import { TestStore } from "../../fixture/calls/Replicas.ts"
import { byId, pathOf, type Team } from "../../../shared/teams/Team.ts"
import { defaults } from "../../../shared/teams/TeamSettings.ts"
import { TeamTree } from "../../../shared/teams/TeamTree.ts"
import { Spending } from "../../../shared/usage/Spending.ts"

/** How long a request waits for units, in milliseconds. */
const waitMs = 10

const base = { createdAt: DateTime.makeUnsafe(0), editedAt: null }

const makeTeam = (id: string, settings: Partial<Team>): Team => ({
  ...defaults,
  id,
  name: id.slice(5),
  ...base,
  ...settings
})

const makeKey = (settings: Partial<ApiKey>): ApiKey => ({
  ...keyDefaults,
  id: "key_a",
  owner: "key_a",
  name: "a",
  ...base,
  ...settings
})

const operation = Option.getOrThrow(Option.fromUndefinedOr(operationNamed("chat.completions")))

const chat: AdmissionRequest = { operation, model: "gpt-5", decoded: { max_tokens: 100 } as never, bytes: 400 }
/** Asks for more tokens than a limit of 1,000. */
const greedy: AdmissionRequest = { ...chat, decoded: { max_tokens: 2_000 } as never }
/** Costs at most half a dollar. */
const dear: AdmissionRequest = { ...chat, highestPrice: { perRequest: 0.5 } }

/** An ingress that knows these teams. */
const start = (teams: ReadonlyArray<Team>, limitWaitMs = waitMs, limits = Limits.layerMemory) =>
  Effect.gen(function*() {
    const state = { teams, spent: new Map<string, number>(), countedUntil: 0 }
    const paths = new Map<string, ReadonlyArray<Team> | undefined>()
    const tree = TeamTree.of({
      all: () => byId(state.teams),
      pathOf: (id) => {
        if (!paths.has(id)) paths.set(id, pathOf(byId(state.teams), id))
        return paths.get(id)
      }
    })
    const spending = Spending.of({
      of: (id) => state.spent.get(id) ?? 0,
      resetMs: () => 1_000_000,
      countedUntil: () => state.countedUntil
    })
    const services = yield* Layer.build(
      Admission.layerNoDeps.pipe(
        Layer.provide([Layer.succeed(TeamTree, tree), Layer.succeed(Spending, spending), limits])
      )
    ).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_LIMIT_WAIT_MS: String(limitWaitMs) })))
    )
    return {
      state,
      admission: Context.get(services, Admission),
      change: (next: ReadonlyArray<Team>) => {
        state.teams = next
        paths.clear()
      }
    }
  })

/** Admits a request, which may have to wait for the ledger in memory. */
const admit = (admission: Admission["Service"], key: ApiKey, request = chat) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(admission.admit(key, request))
    yield* TestClock.adjust(2 * waitMs)
    return yield* Fiber.join(fiber)
  })

const admitWork = (admission: Admission["Service"], key: ApiKey, work: AdmissionWork) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(admission.admitWork(key, work))
    yield* TestClock.adjust(2 * waitMs)
    return yield* Fiber.join(fiber)
  })

describe("a request of a key in a team", () => {
  it.effect("takes from the limits of all levels, and returns everything if one of them is used up", () =>
    Effect.gen(function*() {
      const organisation = makeTeam("team_org", { concurrentRequests: 2 })
      const team = makeTeam("team_a", { parent: "team_org", concurrentRequests: 10 })
      const { admission } = yield* start([organisation, team])
      const key = makeKey({ team: "team_a", concurrentRequests: 3 })
      const other = makeKey({ id: "key_b", team: "team_org" })
      const settle = yield* admit(admission, key)
      yield* admit(admission, other)
      const refused = yield* Effect.flip(admit(admission, key))
      assert.deepInclude(refused, { _tag: "LimitReached", limit: "concurrent", max: 2, team: "org" })
      assert.include(refused.message, "The team 'org' has reached its limit of 2 concurrent requests")
      for (let times = 0; times < 20; times++) yield* Effect.flip(admit(admission, key))
      settle?.("nothing")
      // nothing of the key's own limit is missing after so many refusals
      yield* TestClock.adjust(1_000)
      const again = yield* admit(admission, key)
      again?.("nothing")
    }))

  it.effect("waits no longer if several limits are used up", () =>
    Effect.gen(function*() {
      const { admission } = yield* start([makeTeam("team_a", { concurrentRequests: 1 })])
      const settle = yield* admit(admission, makeKey({ concurrentRequests: 1 }))
      yield* admit(admission, makeKey({ id: "key_b", team: "team_a" }))
      const key = makeKey({ concurrentRequests: 1, team: "team_a" })
      const waiting = yield* Effect.forkChild(Effect.flip(admission.admit(key, chat)))
      yield* TestClock.adjust(waitMs - 1)
      // now only the team's limit is used up
      settle?.("nothing")
      yield* TestClock.adjust(1)
      assert.isDefined(waiting.pollUnsafe())
    }))

  it.effect("may use only models that the key and all teams allow", () =>
    Effect.gen(function*() {
      const teams = [
        makeTeam("team_org", { allowedModels: ["gpt-*", "claude"] }),
        makeTeam("team_a", { parent: "team_org", allowedModels: ["gpt-5", "local"] })
      ]
      const { admission } = yield* start(teams)
      const allowed = (key: ApiKey) =>
        ["gpt-5", "gpt-4", "claude", "local"].filter((model) => admission.allows(key, model))
      assert.deepStrictEqual(allowed(makeKey({ team: "team_a" })), ["gpt-5"])
      assert.deepStrictEqual(allowed(makeKey({ team: "team_org" })), ["gpt-5", "gpt-4", "claude"])
      assert.deepStrictEqual(allowed(makeKey({ team: "team_org", allowedModels: ["claude"] })), ["claude"])
      const refused = yield* Effect.flip(admission.admit(makeKey({ team: "team_a" }), { ...chat, model: "gpt-4" }))
      assert.strictEqual(refused._tag, "ModelNotAllowed")
    }))

  it.effect("waits for the copy of the teams, and follows its changes", () =>
    Effect.gen(function*() {
      const { admission, change } = yield* start([])
      const key = makeKey({ team: "team_a" })
      assert.strictEqual((yield* Effect.flip(admission.admit(key, chat)))._tag, "Unavailable")
      change([makeTeam("team_a", { tokensPerMinute: 50 })])
      const refused = yield* Effect.flip(admission.admit(key, chat))
      assert.deepInclude(refused, { _tag: "TokensOverLimit", max: 50, team: "a" })
      change([makeTeam("team_a", {})])
      assert.isUndefined(yield* admission.admit(key, chat))
    }))

  it.effect("gets the tightest limit of all levels in its headers", () =>
    Effect.gen(function*() {
      const { admission } = yield* start([makeTeam("team_a", { requestsPerMinute: 5, tokensPerMinute: 10_000 })])
      const key = makeKey({ team: "team_a", requestsPerMinute: 60, tokensPerMinute: 1_000 })
      yield* admit(admission, key)
      const headers = admission.headers(key, "openai")?.() ?? {}
      assert.strictEqual(headers["x-ratelimit-limit-requests"], "5")
      assert.strictEqual(headers["x-ratelimit-remaining-requests"], "4")
      assert.strictEqual(headers["x-ratelimit-limit-tokens"], "1000")
      assert.isUndefined(admission.headers(makeKey({}), "openai"))
    }))
})

describe("the work of a task", () => {
  it.effect("has its answer before its worker stops waiting for it, however long requests may wait", () =>
    Effect.gen(function*() {
      const { admission } = yield* start([], 10_000)
      const key = makeKey({ concurrentRequests: 1 })
      yield* admit(admission, key)
      const work = { tokens: 100, highestPrice: undefined }
      const waiting = yield* Effect.forkChild(Effect.flip(admission.admitWork(key, work)))
      yield* TestClock.adjust(answerWithinMs - 1)
      assert.isDefined(waiting.pollUnsafe())
    }))

  it.effect("keeps its cost reserved until it is counted, also if only input has a price", () =>
    Effect.gen(function*() {
      const { admission, state } = yield* start([])
      const key = makeKey({ monthlyBudgetUsd: 1 })
      const work = { tokens: 900_000, inBatch: true, highestPrice: { inputPerMillion: 1 } }
      const settle = yield* admitWork(admission, key, work)
      settle?.({ inputTokens: 900_000, outputTokens: 0 })
      yield* TestClock.adjust(5_000)
      const refused = yield* Effect.flip(admitWork(admission, key, work))
      assert.deepInclude(refused, { _tag: "LimitReached", limit: "budget" })
      state.countedUntil = 60_000
      yield* TestClock.adjust(2_000)
      assert.isDefined(yield* admitWork(admission, key, work))
    }))

  it.effect("takes only the tokens beyond those of its lost hold, which count as used", () =>
    Effect.gen(function*() {
      const { admission } = yield* start([])
      const key = makeKey({ tokensPerMinute: 1_000 })
      const work = { tokens: 100, isHoldLost: true, highestPrice: undefined }
      const remaining = () => admission.headers(key, "openai")?.()["x-ratelimit-remaining-tokens"]
      for (const [outputTokens, expected] of [[90, "1000"], [130, "970"]] as const) {
        const settle = yield* admitWork(admission, key, work)
        assert.strictEqual(remaining(), "1000")
        settle?.({ inputTokens: 0, outputTokens })
        assert.strictEqual(remaining(), expected)
      }
    }))

  it.effect("reserves its whole cost again if its hold is lost", () =>
    Effect.gen(function*() {
      const { admission } = yield* start([])
      const key = makeKey({ monthlyBudgetUsd: 1 })
      const work = { tokens: 100, isHoldLost: true, highestPrice: { inputPerMillion: 9_000 } }
      yield* admitWork(admission, key, work)
      const refused = yield* Effect.flip(admitWork(admission, key, work))
      assert.deepInclude(refused, { _tag: "LimitReached", limit: "budget" })
    }))
})

describe("a budget", () => {
  it.effect("holds the largest cost of each request until its real cost is counted", () =>
    Effect.gen(function*() {
      const { admission, state } = yield* start([makeTeam("team_a", { monthlyBudgetUsd: 1 })])
      const key = makeKey({ team: "team_a" })
      const first = yield* admit(admission, key, dear)
      const second = yield* admit(admission, key, dear)
      const refused = yield* Effect.flip(admit(admission, key, dear))
      assert.deepInclude(refused, { _tag: "LimitReached", limit: "budget", max: 1, team: "a" })
      // an answer that failed costs nothing, and its reservation returns at once
      first?.("nothing")
      yield* TestClock.adjust(1_000)
      const third = yield* admit(admission, key, dear)
      second?.({ inputTokens: 1, outputTokens: 1 })
      third?.(undefined)
      yield* TestClock.adjust(5_000)
      assert.strictEqual((yield* Effect.flip(admit(admission, key, dear)))._tag, "LimitReached")

      state.spent.set("team_a", 1)
      const spent = yield* Effect.flip(admission.admit(key, dear))
      assert.deepInclude(spent, { _tag: "BudgetSpent", budgetUsd: 1, team: "a" })
      assert.include(spent.message, "The team 'a' has spent its budget of 1 USD")
      // a model without a price is refused, too
      assert.strictEqual((yield* Effect.flip(admission.admit(key, chat)))._tag, "BudgetSpent")
    }))

  it.effect("is free again for what requests cost less than reserved, once that is counted", () =>
    Effect.gen(function*() {
      const { admission, state } = yield* start([])
      const key = makeKey({ monthlyBudgetUsd: 1 })
      const settles = [yield* admit(admission, key, dear), yield* admit(admission, key, dear)]
      for (const settle of settles) settle?.(undefined)
      yield* TestClock.adjust(1_000)
      assert.strictEqual((yield* Effect.flip(admit(admission, key, dear)))._tag, "LimitReached")
      state.spent.set("key_a", 0.2)
      state.countedUntil = 60_000
      yield* TestClock.adjust(2_000)
      assert.isDefined(yield* admit(admission, key, dear))
    }))

  it.effect("admits a request that may cost more than what is left, alone", () =>
    Effect.gen(function*() {
      const { admission, state } = yield* start([])
      const key = makeKey({ monthlyBudgetUsd: 1 })
      state.spent.set("key_a", 0.9)
      const settle = yield* admit(admission, key, dear)
      assert.strictEqual((yield* Effect.flip(admit(admission, key, dear)))._tag, "LimitReached")
      settle?.("nothing")
    }))
})

describe("a request that would choose another model, host or price at the provider", () => {
  // each from the reference of the API that reads it: Anthropic, OpenRouter, LiteLLM, vLLM, OpenAI, Vercel
  const refused: ReadonlyArray<readonly [param: string, members: object]> = [
    ["fallbacks", { fallbacks: [{ model: "claude-opus-4-6" }] }],
    ["models", { models: ["dear"], route: "fallback" }],
    ["Models", { Models: ["dear"] }],
    ["preset", { preset: "team/dear" }],
    ["provider", { provider: { only: ["dear"] } }],
    ["plugins", { plugins: [{ id: "web" }] }],
    ["api_base", { api_base: "https://example.com" }],
    ["kv_transfer_params", { kv_transfer_params: { remote_host: "10.0.0.1" } }],
    ["lora_request", { lora_request: { lora_name: "dear" } }],
    ["service_tier", { service_tier: "priority" }],
    ["speed", { speed: "fast" }],
    ["inference_geo", { inference_geo: "us" }],
    ["providerOptions", { providerOptions: { gateway: { models: ["dear"] } } }]
  ]
  const limited = [
    makeKey({ allowedModels: ["gpt-5"] }),
    makeKey({ monthlyBudgetUsd: 1 }),
    makeKey({ team: "team_b" })
  ]
  const teams = [makeTeam("team_b", { allowedModels: ["gpt-*"] })]
  const asked = (members: object): AdmissionRequest => ({ ...chat, decoded: members as never })

  it.effect.each(refused)("is refused for a limited key, which names %s", ([param, members]) =>
    Effect.gen(function*() {
      const { admission } = yield* start(teams)
      for (const key of limited) {
        const error = yield* Effect.flip(admit(admission, key, asked(members)))
        assert.deepInclude(error, { _tag: "InvalidRequest", param, code: "not_allowed" })
      }
      // a key without limits may use whatever the provider has
      yield* admit(admission, makeKey({}), asked(members))
    }))

  const passed: ReadonlyArray<object> = [
    { service_tier: "auto" },
    { service_tier: "flex" },
    { service_tier: null, fallbacks: null },
    { models: [], fallbacks: [] },
    { speed: "standard", inference_geo: "global" },
    // of speech
    { speed: 1.25 },
    { metadata: { models: "a" }, model: "gpt-5" }
  ]
  it.effect.each(passed)("is admitted with %j", (members) =>
    Effect.gen(function*() {
      const { admission } = yield* start(teams)
      for (const key of limited) yield* admit(admission, key, asked(members))
    }))
})

describe("while the ledgers of limits cannot be read or written", () => {
  type Refused = Effect.Error<ReturnType<Admission["Service"]["admit"]>>
  type Act = (admission: Admission["Service"], key: ApiKey) => Effect.Effect<void, Refused>
  const work: AdmissionWork = { tokens: 100, highestPrice: undefined }
  const asks: Readonly<Record<string, Act>> = {
    request: (admission, key) => Effect.asVoid(admit(admission, key, dear)),
    entry: (admission, key) => Effect.asVoid(admission.enter(key, true)),
    work: (admission, key) => Effect.asVoid(admitWork(admission, key, { ...work, highestPrice: { perRequest: 0.5 } })),
    batch: (admission, key) => Effect.asVoid(admitWork(admission, key, { ...work, inBatch: true }))
  }
  const own = "The API key"
  const team = "The team 'parent'"
  // the error names the limit that the key or the team has
  const rows = [
    ["request", { requestsPerMinute: 1_000 }, {}, `${own} has a limit of 1000 requests per minute`],
    ["request", { tokensPerMinute: 5_000 }, {}, `${own} has a limit of 5000 tokens per minute`],
    ["request", { concurrentRequests: 8 }, {}, `${own} has a limit of 8 concurrent requests`],
    ["request", { monthlyBudgetUsd: 20 }, {}, `${own} has 20 USD left of a budget`],
    ["request", {}, { requestsPerMinute: 60 }, `${team} has a limit of 60 requests per minute`],
    ["request", {}, { monthlyBudgetUsd: 7 }, `${team} has 7 USD left of a budget`],
    ["entry", { requestsPerMinute: 1_000 }, {}, `${own} has a limit of 1000 requests per minute`],
    ["work", { concurrentRequests: 8 }, {}, `${own} has a limit of 8 concurrent requests`],
    ["work", { monthlyBudgetUsd: 20 }, {}, `${own} has 20 USD left of a budget`],
    ["batch", { batchConcurrency: 3 }, {}, `${own} has a limit of 3 concurrent requests`]
  ] as const

  it.effect.each(rows)(
    "a %s of a key with %j, in a team with %j, is refused as undecided",
    ([ask, limits, above, says]) =>
      Effect.gen(function*() {
        const store = yield* TestStore.make()
        store.isAway = true
        const away = Limits.layerNoDeps.pipe(Layer.provide(Layer.succeed(LimitStore, store.service)))
        const { admission } = yield* start([makeTeam("team_parent", above)], waitMs, away)
        const fiber = yield* Effect.forkChild(
          Effect.flip(asks[ask]!(admission, makeKey({ team: "team_parent", ...limits })))
        )
        yield* TestClock.adjust("2 seconds")
        const error = yield* Fiber.join(fiber)
        assert.deepInclude(error, { _tag: "LimitsUnavailable", limit: says, retryAfterMs: 2_000 })
      })
  )

  it.effect("a key without limits is served", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      store.isAway = true
      const away = Limits.layerNoDeps.pipe(Layer.provide(Layer.succeed(LimitStore, store.service)))
      const { admission } = yield* start([], waitMs, away)
      assert.isUndefined(yield* admit(admission, makeKey({})))
    }))
})

describe("a request that is asked for its limits at its head", () => {
  const key = makeKey({ requestsPerMinute: 1, concurrentRequests: 1, tokensPerMinute: 1_000 })

  /** How a request of the key goes on after its head was admitted. */
  const cases: ReadonlyArray<{
    readonly name: string
    readonly isConcurrent: boolean
    readonly request: AdmissionRequest | undefined
    /** Whether another request may enter then, and whether one more may be run. */
    readonly after: readonly [enters: boolean, runs: boolean]
  }> = [
    { name: "that is refused gives back both", isConcurrent: true, request: undefined, after: [true, true] },
    { name: "whose tokens exceed the limit gives back both", isConcurrent: true, request: greedy, after: [true, true] },
    { name: "that is admitted holds both", isConcurrent: true, request: chat, after: [false, false] },
    { name: "that may run later is admitted with both", isConcurrent: false, request: chat, after: [false, false] },
    {
      name: "that runs later holds only the request",
      isConcurrent: false,
      request: { ...chat, isLater: true },
      after: [false, true]
    }
  ]
  for (const { after: [enters, runs], isConcurrent, name, request } of cases) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { admission } = yield* start([])
        const waited = <A, E>(effect: Effect.Effect<A, E>) =>
          Effect.gen(function*() {
            const fiber = yield* Effect.forkChild(effect)
            yield* TestClock.adjust(2 * waitMs)
            return yield* Effect.isSuccess(Fiber.join(fiber))
          })
        const entry = yield* Effect.forkChild(admission.enter(key, isConcurrent)).pipe(
          Effect.tap(() => TestClock.adjust(2 * waitMs)),
          Effect.flatMap(Fiber.join)
        )
        if (request !== undefined) yield* waited(admission.admit(key, request, entry))
        // of no effect for a request that was admitted
        entry?.giveBack()
        yield* TestClock.adjust(1_000)
        assert.strictEqual(yield* waited(admission.enter(key, false)), enters, "enters")
        // a request of the same concurrency, whatever its rate
        const concurrent = makeKey({ concurrentRequests: 1 })
        assert.strictEqual(yield* waited(admission.enter(concurrent, true)), runs, "runs")
      }))
  }
})

describe("a limit of concurrent requests that requests hold which wait for a provider", () => {
  const slow = { ...chat, model: "slow" }
  const quick = { ...chat, model: "quick" }
  const key = makeKey({ concurrentRequests: 10 })

  /** An ingress at which requests of the key have reached its limit, so many of which wait for these providers. */
  const full = Effect.fnUntraced(function*(
    waits: Readonly<Record<string, number>>,
    teams: ReadonlyArray<Team> = [],
    of = key
  ) {
    const { admission } = yield* start(teams)
    const settles = yield* Effect.forEach(Array.from({ length: 10 }), () => admit(admission, of, slow))
    let next = 0
    const ends = Object.entries(waits).flatMap(([provider, count]) =>
      Array.from({ length: count }, () => admission.wait("slow", settles[next++], provider))
    )
    return { admission, settles, ends }
  })

  const refusal = (admission: Admission["Service"], of: ApiKey, request: AdmissionRequest) =>
    Effect.flip(admit(admission, of, request))

  it.effect("is refused with the provider for which most wait", () =>
    Effect.gen(function*() {
      const { admission, ends } = yield* full({ beta: 3, alpha: 1 })
      const refused = yield* refusal(admission, key, quick)
      assert.include(
        refused.message,
        "The API key has reached its limit of 10 concurrent requests: 4 of them wait for providers, 3 for 'beta'; try again"
      )
      ends[3]!()
      const later = yield* refusal(admission, key, quick)
      assert.include(later.message, "10 concurrent requests: 3 of them wait for the provider 'beta'; try again in")
      for (const end of ends) end()
      const last = yield* refusal(admission, key, quick)
      assert.include(last.message, "10 concurrent requests: try again in")
    }))

  it.effect("admits requests for a free model until half of it are at work", () =>
    Effect.gen(function*() {
      const { admission, ends, settles } = yield* full({ beta: 8 })
      const extras = yield* Effect.forEach([1, 2, 3], () => admit(admission, key, quick))
      yield* refusal(admission, key, quick)
      extras[0]?.("nothing")
      yield* admit(admission, key, quick)
      // as many as then are at work
      yield* refusal(admission, key, quick)
      for (const settle of settles) settle?.("nothing")
      for (const end of ends) end()
      // all units are free again, although two requests go on without one
      yield* Effect.forEach(Array.from({ length: 10 }), () => admit(admission, key, slow))
      yield* refusal(admission, key, quick)
    }))

  it.effect("admits no requests for a model that waits", () =>
    Effect.gen(function*() {
      const { admission } = yield* full({ beta: 10 })
      yield* refusal(admission, key, slow)
      const extra = yield* admit(admission, key, quick)
      const end = admission.wait("quick", extra, "gamma")
      const refused = yield* refusal(admission, key, quick)
      assert.include(refused.message, "10 of them wait for the provider 'beta'")
      end()
      yield* admit(admission, key, quick)
    }))

  it.effect("admits no more requests than half of it without a unit, whatever they wait for", () =>
    Effect.gen(function*() {
      const { admission } = yield* full({ beta: 10 })
      for (const model of ["1", "2", "3", "4", "5"]) {
        admission.wait(model, yield* admit(admission, key, { ...chat, model }), "gamma")
      }
      yield* refusal(admission, key, quick)
    }))

  it.effect("admits requests at their head before their model is known", () =>
    Effect.gen(function*() {
      const { admission, settles } = yield* full({ beta: 10 })
      const enter = Effect.map(admission.enter(key, true), (entry) => entry!)
      const admitted = yield* enter
      assert.isDefined(yield* admission.admit(key, quick, admitted))
      // what is refused gives back its permission, of which there are five
      for (let times = 0; times < 6; times++) {
        const refused = yield* enter
        const fiber = yield* Effect.forkChild(Effect.flip(admission.admit(key, slow, refused)))
        yield* TestClock.adjust(2 * waitMs)
        assert.deepInclude(yield* Fiber.join(fiber), { _tag: "LimitReached", limit: "concurrent" })
        refused.giveBack()
      }
      const patient = yield* enter
      const waiting = yield* Effect.forkChild(admission.admit(key, slow, patient))
      settles[0]?.("nothing")
      yield* TestClock.adjust(2 * waitMs)
      assert.isDefined(yield* Fiber.join(waiting))
    }))

  it.effect("of a team admits requests as that of a key does", () =>
    Effect.gen(function*() {
      const ofTeam = makeKey({ team: "team_a" })
      const { admission } = yield* full({ beta: 8 }, [makeTeam("team_a", { concurrentRequests: 10 })], ofTeam)
      const other = makeKey({ id: "key_b", team: "team_a" })
      yield* admit(admission, other, quick)
      const refused = yield* refusal(admission, other, slow)
      assert.include(
        refused.message,
        "The team 'a' has reached its limit of 10 concurrent requests: 8 of them wait for"
      )
    }))
})
