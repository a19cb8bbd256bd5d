/** Failing providers as clients see them: unnoticed if another target serves, else reported with the right error. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import type { Behaviour } from "../../fixture/provider/FakeProvider.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

interface ProviderFailure {
  readonly what: string
  /** `undefined` if nothing listens at the provider's address. */
  readonly behaviour: Behaviour | undefined
  /** What a client of a model without other targets sees. */
  readonly seen: Partial<Extract<Outcome, { readonly kind: "refused" }>>
}

const failed = { status: 502, code: "upstream_error", retryAfter: null }

const failures: ReadonlyArray<ProviderFailure> = [
  { what: "fails", behaviour: { kind: "status", status: 500 }, seen: failed },
  {
    what: "is overloaded, with a time to retry",
    behaviour: { kind: "status", status: 503, headers: { "retry-after": "40" } },
    seen: { ...failed, retryAfter: "40" }
  },
  {
    what: "is at its rate limit, with a time to retry",
    behaviour: { kind: "status", status: 429, headers: { "retry-after": "40" } },
    seen: { status: 429, code: "rate_limit_exceeded", retryAfter: "40" }
  },
  { what: "sends nothing", behaviour: { kind: "silent" }, seen: { status: 504, code: "upstream_timeout" } },
  { what: "breaks off before its first byte", behaviour: { kind: "cut", after: 0 }, seen: failed },
  { what: "ends cleanly before its first byte", behaviour: { kind: "truncate", after: 0 }, seen: failed },
  { what: "sends an error with status 200", behaviour: { kind: "error", after: 0 }, seen: failed },
  { what: "sends garbage", behaviour: { kind: "raw", pieces: ["<html>"] }, seen: failed },
  { what: "rejects the gateway's key", behaviour: { kind: "status", status: 401 }, seen: failed },
  { what: "cannot be reached", behaviour: undefined, seen: failed }
]

const lines = (make: (index: number) => string) => failures.map((_, index) => make(index)).join("\n")

/** The pauses between retries are short, because no test is about them. */
const retry = "retry: { baseMs: 10, maxMs: 20 }"

const shared = sharedGateway({
  providers: (baseUrl) => `
  sick: { protocol: openai, baseUrl: "${baseUrl}", ${retry} }
  mute: { protocol: openai, baseUrl: "${baseUrl}", ${retry}, timeouts: { firstByteMs: 50 } }
  well: { protocol: openai, baseUrl: "${baseUrl}" }
  gone: { protocol: openai, baseUrl: "http://127.0.0.1:1/v1", ${retry} }
  unbroken: { protocol: openai, baseUrl: "${baseUrl}", ${retry}, breaker: { enabled: false } }
  resting: { protocol: openai, baseUrl: "${baseUrl}", ${retry}, breaker: { openMs: 600000, maxOpenMs: 600000 } }
  recovering: { protocol: openai, baseUrl: "${baseUrl}", ${retry}, breaker: { openMs: 100, maxOpenMs: 100 } }`,
  models: `
${
    lines((index) => {
      const behaviour = failures[index]?.behaviour
      // a timeout so short that a busy machine exceeds it is for the provider that sends nothing
      const provider = behaviour === undefined ? "gone" : behaviour.kind === "silent" ? "mute" : "sick"
      return `  pair-${index}:
    workload: chat
    targets: [{ provider: ${provider}, model: sick-${index} }, { provider: well, model: well, priority: 1 }]
  falling-${index}: { workload: chat, fallbacks: [spare], targets: [{ provider: ${provider}, model: fallen-${index} }] }
  alone-${index}: { workload: chat, targets: [{ provider: ${provider}, model: alone-${index} }] }`
    })
  }
  spare: { workload: chat, targets: [{ provider: well, model: well }] }
  resting: { workload: chat, targets: [{ provider: resting, model: resting }] }
  recovering: { workload: chat, targets: [{ provider: recovering, model: recovering }] }
  limited: { workload: chat, targets: [{ provider: sick, model: limited }] }
  unbroken: { workload: chat, targets: [{ provider: unbroken, model: unbroken }] }
`
})

const ask = (model: string, stream = false) => shared().request(chat(model, { stream }))

const count = (model: string) =>
  shared().provider.requests.filter(({ json }) => (json as { readonly model: string }).model === model).length

const many = <A>(count: number, make: (index: number) => Promise<A>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))

describe("a provider that", () => {
  const cases = failures.map((failure, index) => [failure.what, { ...failure, index }] as const)

  it.each(cases)("%s: another target or a fallback model answers", async (_, failure) => {
    for (const [model, name] of [["pair", "sick"], ["falling", "fallen"]] as const) {
      if (failure.behaviour !== undefined) {
        shared().provider.behave(failure.behaviour, { model: `${name}-${failure.index}` })
      }
      const answers = await many(20, (index) => ask(`${model}-${failure.index}`, index % 2 === 0))
      for (const { headers } of answers) {
        assert.strictEqual(headers.get("x-gateway-provider"), "well")
        assert.match(headers.get("x-gateway-attempts") ?? "", /^[123]$/)
        assert.match(headers.get("x-gateway-queue-ms") ?? "", /^\d+$/)
      }
      assert.deepStrictEqual(tally(await Promise.all(answers.map(outcomeOf))), { whole: 20 })
    }
  })

  it.each(cases)("%s: the client gets the right error if there is no other target", async (_, failure) => {
    if (failure.behaviour !== undefined) {
      shared().provider.behave(failure.behaviour, { model: `alone-${failure.index}` })
    }
    for (const stream of [false, true]) {
      assert.deepInclude(await outcomeOf(ask(`alone-${failure.index}`, stream)), { kind: "refused", ...failure.seen })
    }
  })

  it("fails gets few retries, and hardly any calls after that", async () => {
    shared().provider.behave({ kind: "status", status: 500 }, { model: "unbroken" })
    const outcomes = await many(100, () => outcomeOf(ask("unbroken")))
    assert.deepStrictEqual(tally(outcomes), { "refused 502 upstream_error ": 100 })
    assert.isAtLeast(count("unbroken"), 100)
    assert.isAtMost(count("unbroken"), 120)
    for (let round = 0; round < 50; round++) await ask("alone-0")
    assert.isAtMost(count("alone-0"), 20)
  })

  it("fails opens the circuit, after which no request calls it", async () => {
    shared().provider.behave({ kind: "status", status: 500 }, { model: "resting" })
    const resting = await eventually(
      () => outcomeOf(ask("resting")),
      (outcome) => outcome.kind === "refused" && outcome.retryAfter !== null
    )
    assert.deepInclude(resting, { kind: "refused", status: 502, code: "upstream_error" })
    const before = count("resting")
    const outcomes = await many(30, () => outcomeOf(ask("resting")))
    assert.isTrue(outcomes.every(({ kind }) => kind === "refused"))
    assert.strictEqual(count("resting"), before)
  })

  it("is well again closes the circuit by a probe", async () => {
    const { provider } = shared()
    provider.behave({ kind: "status", status: 500 }, { model: "recovering" })
    await eventually(
      () => outcomeOf(ask("recovering")),
      (outcome) => outcome.kind === "refused" && outcome.retryAfter !== null
    )
    provider.behave({ kind: "answer" }, { model: "recovering" })
    // by steps
    await eventually(
      () => many(30, () => outcomeOf(ask("recovering"))),
      (outcomes) => outcomes.every(({ kind }) => kind === "whole")
    )
  })

  it("is at its rate limit for a moment only delays its clients", async () => {
    shared().provider.behaveInTurn("limited", { kind: "status", status: 429, headers: { "retry-after-ms": "50" } })
    const first = await ask("limited")
    assert.strictEqual(first.headers.get("x-gateway-attempts"), "2")
    assert.deepStrictEqual(await outcomeOf(first), { kind: "whole" })
    assert.strictEqual(count("limited"), 2)
  })

  it("fails shows in the worker's metrics", async () => {
    const answer = await fetch(`http://127.0.0.1:${shared().workers[0]!.port}/metrics`)
    const metrics = await answer.text()
    const value = (name: string, labels: ReadonlyArray<string>) => {
      const line = metrics.split("\n").find((line) =>
        line.startsWith(`${name}{`) && labels.every((label) => line.includes(label))
      )
      return Number(line?.split(" ").at(-1) ?? assert.fail(`no ${name} of ${labels.join()} in\n${metrics}`))
    }
    const unbroken = [`provider="unbroken"`]
    const failures = value("gateway_provider_attempts_total", [...unbroken, `outcome="ProviderFailed"`])
    assert.strictEqual(failures, count("unbroken"))
    assert.strictEqual(value("gateway_provider_retries_total", unbroken), failures - 100)
    assert.strictEqual(value("gateway_provider_breaker_state", [`provider="recovering"`]), 0)
    assert.strictEqual(value("gateway_provider_breaker_state", [`provider="resting"`]), 2)
  })
})
