/** What the operator has switched off gets no request, and the check of the catalogue lists it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Catalogue from "../../../../shared/catalogue/Catalogue.ts"
import { lint } from "../../../../shared/catalogue/Lint.ts"
import { Scripted, status } from "./Scripted.ts"

const plain = "breaker: { enabled: false }, limits: { adaptive: false }, retry: { times: 0 }"

const catalogueOf = (model: string, provider = "") => `
providers:
  a: { protocol: local, ${plain}${provider} }
  b: { protocol: local, ${plain} }
models:
  m: { workload: chat, ${model} }
  other: { workload: chat, targets: [{ provider: b }] }
  off: { workload: chat, disabled: true, targets: [{ provider: b }], fallbacks: [other] }
`

const both = "targets: [{ provider: a }, { provider: b, priority: 1 }]"

/** What is switched off, the targets that are called in turn (provider a fails), and what the check of the catalogue says. */
const rows: ReadonlyArray<
  readonly [title: string, catalogue: string, called: ReadonlyArray<string>, remarks: ReadonlyArray<string>]
> = [
  ["nothing", catalogueOf(both), ["a/m", "b/m"], []],
  ["a provider", catalogueOf(both, ", disabled: true"), ["b/m"], ["providers.a.disabled is switched off"]],
  [
    "a target",
    catalogueOf("targets: [{ provider: a, disabled: true }, { provider: b, priority: 1 }]"),
    ["b/m"],
    ["models.m.targets.0 is switched off"]
  ],
  [
    "a target by its weight",
    catalogueOf("targets: [{ provider: a, weight: 0 }, { provider: b }]"),
    ["b/m"],
    ["models.m.targets.0 is switched off"]
  ],
  [
    "all targets but a fallback's",
    catalogueOf("targets: [{ provider: a, disabled: true }], fallbacks: [other]"),
    ["b/other"],
    ["models.m.targets.0 is switched off"]
  ],
  [
    "a fallback, with its own fallbacks",
    catalogueOf("targets: [{ provider: a }], fallbacks: [off]"),
    ["a/m"],
    []
  ],
  [
    "the only target, and a fallback that has a fallback",
    catalogueOf("targets: [{ provider: a, disabled: true }], fallbacks: [off]"),
    [],
    [
      "models.m.targets.0 is switched off",
      "models.m answers 503 `model_disabled`: all its targets are switched off"
    ]
  ],
  ["the model", catalogueOf(`disabled: true, ${both}`), [], ["models.m.disabled is switched off"]],
  [
    "the only target",
    catalogueOf("targets: [{ provider: b, weight: 0 }]"),
    [],
    [
      "models.m.targets.0 is switched off",
      "models.m answers 503 `model_disabled`: all its targets are switched off"
    ]
  ]
]

describe("switched off", () => {
  it.effect.each(rows)("%s", ([, text, called, remarks]) =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(text)
      scripted.behave("a/m", status(500))
      const outcome = yield* scripted.request("m")
      assert.deepStrictEqual(scripted.calls(), called)
      if (called.length === 0) {
        assert.deepStrictEqual(outcome.kind === "failed" ? outcome.error._tag : outcome.kind, "ModelDisabled")
      }
      const found = yield* lint(yield* Catalogue.parse("gateway.yaml", text), {
        serves: () => true,
        hasVariable: () => true,
        hasFile: () => Effect.succeed(true),
        hasPackage: () => true,
        queueTimeoutMs: 10_000
      })
      const listed = found.map(({ message, path }) => `${path.join(".")} ${message}`)
      assert.deepStrictEqual(
        listed.filter((line) => line.includes("switched off") && !line.startsWith("models.off")),
        remarks
      )
    }))
})
