/** How long a call may take, which setting says so, and what follows a call that took longer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "../../../../shared/catalogue/Catalogue.ts"
import { ProviderTimeout } from "../../../../shared/contract/JobError.ts"
import { inOrder, routeOf } from "../../../../shared/provider/routing/Route.ts"
import * as Endpoint from "../../../../shared/provider/transport/Endpoint.ts"
import { answers, fails, Scripted } from "./Scripted.ts"

const minuteMs = 60_000

const catalogue = `
providers:
  plain: { protocol: openai, baseUrl: "http://p/v1" }
  quick: { protocol: openai, baseUrl: "http://q/v1", timeouts: { firstByteMs: 1000, idleMs: 2000, totalMs: 3000 } }
models:
  plain: { workload: chat, targets: [{ provider: plain }] }
  quick: { workload: chat, targets: [{ provider: quick }] }
  thinking: { workload: chat, timeouts: { firstByteMs: 600000, totalMs: 700000 }, targets: [{ provider: quick }] }
  nearest:
    workload: chat
    timeouts: { firstByteMs: 600000, firstTokenMs: 5000 }
    targets: [{ provider: quick, timeouts: { firstByteMs: 4 } }]
  other: { workload: chat, targets: [{ provider: plain, model: x, timeouts: { firstByteMs: 50 } }], fallbacks: [thinking] }
`

/** The endpoint of a model's target. */
const endpointOf = (model: string, index = 0) =>
  Effect.map(parse("gateway.yaml", catalogue), (snapshot) => {
    const route = routeOf(snapshot, model)!
    return inOrder(route, { nextDoubleUnsafe: () => 0, nextIntUnsafe: () => 0 })[index]!.endpoint
  })

const json = { streams: false }
const stream = { streams: true }

// the defaults are those of the README; OpenAI's and Anthropic's SDKs wait for ten minutes, Claude Code and Codex for 300 s of silence
it.effect.each<
  readonly [
    name: string,
    model: string,
    kind: Endpoint.CallKind & { readonly isBackground?: true },
    expected: Partial<Endpoint.Timeouts>
  ]
>([
  ["a JSON answer by default", "plain", json, {
    firstByteMs: 30 * minuteMs,
    idleMs: 30 * minuteMs,
    totalMs: 30 * minuteMs
  }],
  ["a stream by default", "plain", stream, { firstByteMs: 5 * minuteMs, idleMs: 5 * minuteMs, totalMs: 30 * minuteMs }],
  [
    "a JSON answer in the background",
    "plain",
    { ...json, isBackground: true },
    { firstByteMs: 1_440 * minuteMs, totalMs: 1_440 * minuteMs }
  ],
  ["a stream in the background", "plain", { ...stream, isBackground: true }, {
    idleMs: 5 * minuteMs,
    totalMs: 1_440 * minuteMs
  }],
  ["a provider's settings", "quick", json, { firstByteMs: 1_000, idleMs: 2_000, totalMs: 3_000 }],
  ["a provider's settings in the background", "quick", { ...json, isBackground: true }, { totalMs: 3_000 }],
  ["a model's settings", "thinking", json, { firstByteMs: 600_000, idleMs: 2_000, totalMs: 700_000 }],
  ["a target's settings", "nearest", stream, { firstByteMs: 4, firstTokenMs: 5_000, idleMs: 2_000, totalMs: 3_000 }],
  ["a call with a limit of its own", "plain", { ...json, withinMs: 10 }, { firstByteMs: 10, totalMs: 10 }]
])("the time limits of %s", ([_name, model, { isBackground, ...kind }, expected]) =>
  Effect.gen(function*() {
    const endpoint = yield* endpointOf(model)
    const limits = Endpoint.timeoutsOf(isBackground === true ? Endpoint.inBackground(endpoint) : endpoint, kind)
    assert.deepInclude(limits, expected)
  }))

it.effect("a fallback has the limits of its own model", () =>
  Effect.gen(function*() {
    assert.strictEqual(Endpoint.timeoutsOf(yield* endpointOf("other", 0)).firstByteMs, 50)
    assert.strictEqual(Endpoint.timeoutsOf(yield* endpointOf("other", 1)).firstByteMs, 600_000)
  }))

it.effect.each<
  readonly [
    model: string,
    phase: "first byte" | "first token" | "idle" | "total",
    kind: Endpoint.CallKind,
    limit: string
  ]
>([
  ["plain", "total", json, "1800000 ms, the default of timeouts.totalMs"],
  ["plain", "first byte", json, "1800000 ms, the default of timeouts.totalMs"],
  ["plain", "idle", stream, "300000 ms, the default of timeouts.idleMs"],
  ["plain", "first byte", stream, "300000 ms, the default of timeouts.firstByteMs"],
  ["quick", "idle", stream, "2000 ms, by timeouts.idleMs of the provider 'quick'"],
  ["thinking", "total", json, "700000 ms, by timeouts.totalMs of the model 'thinking'"],
  ["nearest", "first byte", json, "4 ms, by timeouts.firstByteMs of a target of the model 'nearest'"],
  ["nearest", "first token", stream, "5000 ms, by timeouts.firstTokenMs of the model 'nearest'"],
  ["plain", "total", { withinMs: 60_000 }, "60000 ms for this call"]
])(
  "the error of a call to %s that ends at its limit, %s, names the setting",
  ([model, phase, kind, limit]) =>
    Effect.gen(function*() {
      const error = Endpoint.timedOut(yield* endpointOf(model), phase, kind)
      assert.isTrue(error.message.endsWith(`: the limit is ${limit}`), error.message)
    })
)

const routed = `
providers:
  a: { protocol: local, idempotent: false }
  b: { protocol: local, idempotent: false }
  hasty: { protocol: local, idempotent: false, timeouts: { firstByteMs: 1000 } }
  free: { protocol: local }
models:
  alone: { workload: chat, targets: [{ provider: a, model: m }] }
  pair: { workload: chat, targets: [{ provider: a, model: m }, { provider: b, model: m, priority: 1 }] }
  hasty: { workload: chat, targets: [{ provider: hasty, model: m }, { provider: b, model: m, priority: 1 }] }
  hasty-alone: { workload: chat, targets: [{ provider: hasty, model: m }] }
  set: { workload: chat, timeouts: { idleMs: 1 }, targets: [{ provider: a, model: m }, { provider: b, model: m, priority: 1 }] }
  free: { workload: chat, targets: [{ provider: free, model: m }, { provider: b, model: m, priority: 1 }] }
`

describe("a call that has timed out", () => {
  // design: a paid call that timed out after it was sent is never repeated by default; a limit that is set asks for the next target
  it.effect.each<readonly [name: string, model: string, phase: ProviderTimeout["phase"], calls: ReadonlyArray<string>]>(
    [
      ["at the default is not repeated", "alone", "first byte", ["a/m"]],
      ["at the default is followed by no other target", "pair", "first byte", ["a/m"]],
      ["at the default of the whole answer is followed by no other target", "pair", "total", ["a/m"]],
      ["at the provider's setting is followed by the next target", "hasty", "first byte", ["hasty/m", "b/m"]],
      ["at the provider's setting is not repeated there", "hasty-alone", "first byte", ["hasty/m"]],
      ["at the default of another limit than the one that is set is not repeated", "hasty", "total", ["hasty/m"]],
      ["at the model's setting is followed by the next target", "set", "idle", ["a/m", "b/m"]],
      ["before it was sent is followed by the next target", "pair", "connect", ["a/m", "b/m"]],
      ["at a provider that costs nothing is followed by the next target", "free", "first byte", ["free/m", "b/m"]]
    ]
  )("%s", ([_name, model, phase, calls]) =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(routed)
      for (const name of ["a/m", "hasty/m", "free/m"]) {
        scripted.behave(name, fails((provider) => new ProviderTimeout({ provider, phase })))
      }
      scripted.behave("b/m", answers())
      const { outcome } = yield* scripted.timed(model)
      assert.deepStrictEqual(scripted.calls(), calls)
      assert.strictEqual(outcome.kind, calls.at(-1) === "b/m" ? "answered" : "failed")
    }))
})
