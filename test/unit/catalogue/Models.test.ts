/** Ingress reads only the models of a catalogue, from the whole file or from one without providers. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, FileSystem, Layer, Logger, Schema } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { Facts } from "../../../shared/catalogue/Facts.ts"
import table from "../../../shared/catalogue/known-models.json" with { type: "json" }
import { knownFacts } from "../../../shared/catalogue/KnownModels.ts"
import { poolsOf } from "../../../shared/catalogue/Model.ts"
import { Models, parse } from "../../../shared/catalogue/Models.ts"

const models = `
models:
  small: { workload: chat, targets: [{ provider: free }], fallbacks: [large] }
  large: { workload: chat, pool: large-1, targets: [{ provider: paid }], price: { perRequest: 1 } }
`

const offered = [
  // its fallback has a price
  ["small", { workload: "chat", pool: "default", highestPrice: { perRequest: 1 } }],
  ["large", { workload: "chat", pool: "large-1", highestPrice: { perRequest: 1 }, price: { perRequest: 1 } }]
]

describe("the models of a catalogue", () => {
  it.effect("are known by name, workload and pool alone, with or without providers in the file", () =>
    Effect.gen(function*() {
      const withProviders = `providers: { free: { protocol: local }, paid: { protocol: local } }${models}`
      const bare = `models:
  small: { workload: chat, highestPrice: { perRequest: 1 } }
  large: { workload: chat, pool: large-1, price: { perRequest: 1 }, highestPrice: { perRequest: 1 } }
`
      for (const text of [withProviders, models, bare]) {
        const found = yield* parse("gateway.yaml", text)
        assert.deepStrictEqual([...found.models] as unknown, offered)
        assert.hasAllKeys(found, ["models"])
        assert.deepStrictEqual(poolsOf(found), [
          { workload: "chat", pool: "default" },
          { workload: "chat", pool: "large-1" }
        ])
      }
    }))

  it.effect("of videos have the protocols of their targets and fallbacks, as far as the file names them", () =>
    Effect.gen(function*() {
      const videos = `models:
  both: { workload: video, targets: [{ provider: a }, { provider: a, model: b }], fallbacks: [own], maxVideos: 2 }
  own: { workload: video, targets: [{ provider: b }] }
  lost: { workload: video, targets: [{ provider: c }] }
`
      const providers = "providers: { a: { protocol: dashscope }, b: { protocol: local } }\n"
      const projected = [
        ["both", { workload: "video", pool: "default", protocols: ["dashscope", "local"], maxVideos: 2 }],
        ["own", { workload: "video", pool: "default", protocols: ["local"] }],
        ["lost", { workload: "video", pool: "default" }]
      ]
      assert.deepStrictEqual([...(yield* parse("gateway.yaml", providers + videos)).models] as unknown, projected)
      const printed = JSON.stringify({ models: Object.fromEntries(projected as never) })
      assert.deepStrictEqual([...(yield* parse("models.yaml", printed)).models] as unknown, projected)
      const { models: without } = yield* parse("gateway.yaml", videos)
      assert.isUndefined(without.get("both")?.protocols)
    }))

  it.effect("have the facts of their settings, of their first target, and of the known model at it, in this order", () =>
    Effect.gen(function*() {
      const text = `models:
  own: { workload: chat, contextWindow: 8000, tools: false, targets: [{ provider: a, model: claude-opus-5 }] }
  first:
    workload: chat
    price: { perRequest: 1 }
    targets:
      - { provider: a, model: gpt-5, priority: 1 }
      - { provider: b, model: us.anthropic.claude-opus-4-5-20251101-v1:0, price: { perRequest: 2 } }
  gpt-5: { workload: chat, targets: [{ provider: a, model: own }] }
`
      const { models } = yield* parse("gateway.yaml", text)
      assert.deepInclude(models.get("own"), { ...knownFacts("claude-opus-5"), contextWindow: 8000, tools: false })
      assert.deepInclude(models.get("first"), {
        ...knownFacts("claude-opus-4-5"),
        price: { perRequest: 2 },
        highestPrice: { perRequest: 2 }
      })
      // a known price is not billed
      assert.isUndefined(models.get("own")?.highestPrice)
      assert.deepStrictEqual(models.get("gpt-5") as unknown, { workload: "chat", pool: "default" })
      const printed = JSON.stringify({ models: Object.fromEntries(models) })
      assert.deepStrictEqual([...(yield* parse("models.yaml", printed)).models], [...models])
    }))

  it("of well-known vendors are known by the names that other providers give them", () => {
    for (
      const { name, same } of [
        { name: "gpt-4o-2024-08-06", same: "gpt-4o" },
        { name: "anthropic/claude-opus-5", same: "claude-opus-5" },
        { name: "eu.anthropic.claude-opus-4-5-20251101-v1:0", same: "claude-opus-4-5" },
        { name: "claude-sonnet-4-5@20250929", same: "claude-sonnet-4-5" }
      ]
    ) {
      assert.isDefined(knownFacts(name), name)
      assert.strictEqual(knownFacts(name), knownFacts(same), name)
    }
    assert.isUndefined(knownFacts("gpt-5-imaginary"))
  })

  it("of well-known vendors are in a table that is as valid as a catalogue", () => {
    const decode = Schema.decodeUnknownSync(Schema.Record(Schema.String, Facts), { onExcessProperty: "error" })
    const models = Object.entries(decode(table.models))
    assert.isAbove(models.length, 200)
    assert.match(table.source, /^LiteLLM \d.*MIT/)
  })

  it.effect("may have a shadow", () =>
    Effect.gen(function*() {
      const shadow = { model: "n", share: 0.5 }
      const text = JSON.stringify({ models: { m: { workload: "chat", shadow }, n: { workload: "chat" } } })
      const { models } = yield* parse("gateway.yaml", text)
      assert.deepStrictEqual([models.get("m")?.shadow, models.get("n")?.shadow], [shadow, undefined])
    }))

  it.effect("may have a description for clients; that of the built-in embeddings says that they are lexical", () =>
    Effect.gen(function*() {
      const { models } = yield* parse("gateway.yaml", readFileSync("deploy/local/gateway.yaml", "utf8"))
      assert.match(models.get("local-embedding")?.description ?? "", /^Lexical, without a model\./)
    }))

  it.effect("are read even if only workers understand the providers", () =>
    Effect.gen(function*() {
      const { models: found } = yield* parse("gateway.yaml", `providers: { free: { protocol: telepathy } }${models}`)
      assert.deepStrictEqual([...found] as unknown, offered)
    }))

  it.effect.each(
    [
      ["a misspelt field", "models: { m: { workload: chat, pol: x } }", ":1 models.m.pol: is unknown"],
      ["an unknown workload", "models: { m: { workload: chess } }", ":1 models.m.workload: must be"],
      [
        "an impossible number of videos",
        "models: { m: { workload: video, maxVideos: 0 } }",
        ":1 models.m.maxVideos: must"
      ],
      ["a misspelt section", "models: {}\nmodel: {}", ":2 model: is unknown"],
      ["no models", "providers: {}", ":1 models: is required"],
      ["a list", "- a", ":1 the file must be an object"],
      [
        "a fallback of another workload",
        "models: { m: { workload: chat, fallbacks: [n] }, n: { workload: speech } }",
        ":1 models.m.fallbacks[0]: 'n' must have the same workload, chat, not speech"
      ],
      [
        "a shadow of another workload",
        "models: { m: { workload: chat, shadow: { model: n, share: 1 } }, n: { workload: speech } }",
        ":1 models.m.shadow.model: 'n' must have the same workload, chat, not speech"
      ]
    ] as const
  )("are rejected for %s", ([_, text, message]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(parse("gateway.yaml", text))
      assert.isTrue(error.message.startsWith(`gateway.yaml${message}`), error.message)
    }))

  it.effect("follow the file; an edit with a literal secret changes nothing and is logged without the secret", () =>
    Effect.gen(function*() {
      const files = yield* FileSystem.FileSystem
      const file = `${yield* files.makeTempDirectoryScoped()}/models.yaml`
      yield* files.writeFileString(file, models)
      const log: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => {
        log.push(JSON.stringify(message))
      })
      const built = yield* Layer.build(Models.layer).pipe(
        Effect.provide([
          Logger.layer([logger]),
          ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_CONFIG: file }))
        ])
      )
      const { current } = Context.get(built, Models)
      const edit = (text: string) =>
        files.writeFileString(`${file}.new`, text).pipe(Effect.andThen(files.rename(`${file}.new`, file)))
      const look = TestClock.adjust("1 second").pipe(Effect.andThen(Effect.promise(() => new Promise(setImmediate))))
      const until = (word: string) => Effect.repeat(look, { until: () => log.some((line) => line.includes(word)) })
      yield* edit(`providers: { p: { protocol: openai, apiKey: sk-s3cr3t } }${models}  tiny: { workload: chat }`)
      yield* until("catalogue not reloaded")
      assert.include(log.join(), "providers.p.apiKey: must be a reference")
      assert.notInclude(log.join(), "s3cr3t")
      assert.isFalse(current().models.has("tiny"))
      yield* edit(`${models}  tiny: { workload: chat }`)
      yield* until("catalogue reloaded")
      assert.isTrue(current().models.has("tiny"))
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})
