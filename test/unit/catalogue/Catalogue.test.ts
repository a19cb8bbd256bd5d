/** Catalogue errors name their position, and an edit with an error changes nothing. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, FileSystem, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Catalogue, load, parse } from "../../../shared/catalogue/Catalogue.ts"
import { defaultBreaker, defaultRetry, isIdempotent } from "../../../shared/catalogue/Provider.ts"

const valid = `
providers:
  paid: { protocol: openai, baseUrl: "https://api.example.com/v1", apiKey: "\${PAID_KEY}" }
  free: { protocol: local, options: { pace: { tokensPerSecond: 50 } } }
models:
  small: { workload: chat, targets: [{ provider: free }] }
  large:
    workload: chat
    pool: large-1
    targets:
      - { provider: paid, model: large-2, weight: 0.5 }
      - { provider: free, priority: 1 }
`

describe("a catalogue", () => {
  it.effect("is decoded with all its settings", () =>
    Effect.gen(function*() {
      const { models, providers } = yield* parse("gateway.yaml", valid)
      assert.deepStrictEqual([...providers], [
        ["paid", { protocol: "openai", baseUrl: "https://api.example.com/v1", apiKey: "${PAID_KEY}" }],
        ["free", { protocol: "local", options: { pace: { tokensPerSecond: 50 } } }]
      ])
      assert.deepStrictEqual([...models], [
        ["small", { workload: "chat", targets: [{ provider: "free" }] }],
        ["large", {
          workload: "chat",
          pool: "large-1",
          targets: [{ provider: "paid", model: "large-2", weight: 0.5 }, { provider: "free", priority: 1 }]
        }]
      ])
    }))

  it.effect("accepts any names for providers and models", () =>
    Effect.gen(function*() {
      const names = ["__proto__", "constructor", "1", "meta/llama 3.1", "漢字"]
      const lines = names.map((name) => `  "${name}": { workload: chat, targets: [{ provider: "${name}" }] }`)
      const { models, providers } = yield* parse(
        "gateway.yaml",
        ["providers:", ...names.map((name) => `  "${name}": { protocol: local }`), "models:", ...lines].join("\n")
      )
      assert.sameMembers([...providers.keys()], names)
      assert.sameMembers([...models.keys()], names)
    }))

  it.effect("has defaults for a provider's missing settings", () =>
    Effect.gen(function*() {
      const snapshot = yield* parse(
        "gateway.yaml",
        change("protocol: local,", "protocol: local, retry: { times: 0 }, breaker: { openMs: 5 },")
      )
      const { breaker, retry } = snapshot.providers.get("free") ?? assert.fail()
      assert.deepStrictEqual(retry, { ...defaultRetry, times: 0 })
      assert.deepStrictEqual(breaker, { ...defaultBreaker, openMs: 5 })
      assert.deepStrictEqual(defaultRetry, { times: 2, baseMs: 250, maxMs: 5_000, budget: 0.15 })
    }))

  it.effect("says which providers are idempotent, also by the deprecated `redispatch`", () =>
    Effect.gen(function*() {
      const settings = [
        ["openai", "", false],
        ["openai", "idempotent: true", true],
        ["openai", "idempotent: false", false],
        ["openai", "redispatch: always", true],
        ["openai", "redispatch: neverSent", false],
        ["local", "", true],
        ["local", "idempotent: false", false],
        ["local", "redispatch: neverSent", false]
      ] as const
      for (const [protocol, setting, expected] of settings) {
        const { providers } = yield* parse(
          "gateway.yaml",
          `{ providers: { a: { protocol: ${protocol}, baseUrl: "http://a/v1", ${setting} } }, models: {} }`
        )
        assert.strictEqual(isIdempotent(providers.get("a")!), expected, `${protocol} ${setting}`)
      }
    }))

  it.effect("of a local start is valid", () =>
    Effect.gen(function*() {
      const { models } = yield* load("deploy/local/gateway.yaml")
      assert.strictEqual(models.get("local-chat")?.workload, "chat")
    }).pipe(Effect.provide(NodeFileSystem.layer)))
})

const change = (from: string, to: string): string => {
  assert.include(valid, from)
  return valid.replace(from, to)
}

/** Nine lists, each with nine references to the one before. */
const billionLaughs = `a: &a [x, x]
${
  [..."bcdefghi"].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[index]}`).join(", ")}]`).join(
    "\n"
  )
}`

/** An error, the file with it, and how each line of the message begins after the file's name. */
const mistakes: ReadonlyArray<readonly [what: string, text: () => string, ...lines: ReadonlyArray<string>]> = [
  ["no YAML", () => "providers: {", ":1 Flow map in block collection must be sufficiently indented"],
  ["YAML with tabs", () => "providers:\n\t- x", ":2 Tabs are not allowed as indentation"],
  ["a duplicate key", () => `${valid}\nmodels: {}`, ":14 the key models occurs twice: rename or remove one"],
  ["an alias that expands exponentially", () => billionLaughs, ":1 Excessive alias count"],
  ["nothing", () => "", ":1 the file must be an object"],
  ["a list", () => "- models", ":1 the file must be an object"],
  ["no models", () => "\nproviders: {}", ":2 models: is required"],
  ["empty models", () => "providers: {}\nmodels:", ":2 models: must be an object"],
  ["an unknown protocol", () => change("openai", "smtp"), ":3 providers.paid.protocol: must be \""],
  ["an unknown workload", () => change("chat", "chess"), ":6 models.small.workload: must be \"chat\", "],
  ["a base URL that is not HTTP", () => change("https:", "ftp:"), ":3 providers.paid.baseUrl: must be an http(s) URL"],
  [
    "a base URL with a query",
    () => change("/v1", "/v1?a=b"),
    ":3 providers.paid.baseUrl: must be an http(s) URL without user name, password or query"
  ],
  [
    "a base URL with a user name",
    () => change("https://", "https://user@"),
    ":3 providers.paid.baseUrl: must be an http(s) URL without user name, password or query"
  ],
  [
    "a base URL that cannot be parsed",
    () => change("api.example.com", "api.example.com:80000"),
    ":3 providers.paid.baseUrl: must be an http(s) URL"
  ],
  [
    "a missing base URL",
    () => change("baseUrl: \"https://api.example.com/v1\", ", ""),
    ":3 providers.paid.baseUrl: is required"
  ],
  [
    "a misspelt field",
    () => change("weight", "wieght"),
    ":11 models.large.targets[0].wieght: is unknown: the known fields are provider, disabled, model, weight,"
  ],
  ["an empty API key", () => change("${PAID_KEY}", ""), ":3 providers.paid.apiKey: must be a reference such"],
  [
    "a malformed reference to a key",
    () => change("${PAID_KEY}", "Bearer ${PAID_KEY}"),
    ":3 providers.paid.apiKey: must be a reference such as ${NAME} or ${file:/path}"
  ],
  [
    "a pool that is not a valid subject",
    () => change("large-1", "Large.1"),
    ":9 models.large.pool: must be lower case letters"
  ],
  ["a model without targets", () => change("[{ provider: free }]", "[]"), ":6 models.small.targets: must not be empty"],
  [
    "a negative weight",
    () => change("0.5", "-1"),
    ":11 models.large.targets[0].weight: must be a number of at least 0"
  ],
  [
    "an infinite weight",
    () => change("0.5", ".inf"),
    ":11 models.large.targets[0].weight: must be a number of at least 0"
  ],
  [
    "a fractional priority",
    () => change("priority: 1", "priority: 0.5"),
    ":12 models.large.targets[1].priority: must be a whole number of at least 0"
  ],
  [
    "an unknown provider",
    () => change("paid, model", "unpaid, model"),
    ":11 models.large.targets[0].provider: there is no provider 'unpaid'"
  ],
  [
    "several errors",
    () => change("openai", "smtp").replace("chat", "chess").replace("priority: 1", "priority: x"),
    ":3 providers.paid.protocol: ",
    ":6 models.small.workload: ",
    ":12 models.large.targets[1].priority: "
  ],
  [
    "several unknown providers",
    () => change("[{ provider: free }]", "[{ provider: a }, { provider: b }]"),
    ":6 models.small.targets[0].provider: there is no provider 'a'",
    ":6 models.small.targets[1].provider: there is no provider 'b'"
  ],
  [
    "limits out of range",
    () => change("protocol: openai,", "protocol: openai, limits: { concurrency: 0, requestsPerMinute: 1.5 },"),
    ":3 providers.paid.limits.concurrency: must be a whole number from 1 to 100000",
    ":3 providers.paid.limits.requestsPerMinute: must be a whole number from 1 to"
  ],
  [
    "retries out of range",
    () => change("protocol: openai,", "protocol: openai, retry: { times: 6, budget: 2 },"),
    ":3 providers.paid.retry.times: must be a whole number from 0 to 5",
    ":3 providers.paid.retry.budget: must be a number from 0 to 1"
  ],
  [
    "a breaker that can never open",
    () => change("protocol: openai,", "protocol: openai, breaker: { minimumCalls: 21 },"),
    ":3 providers.paid.breaker.minimumCalls: must be at most lastCalls, 20"
  ],
  [
    "two settings with the same meaning",
    () => change("protocol: openai,", "protocol: openai, idempotent: true, redispatch: always,"),
    ":3 providers.paid.redispatch: remove it: `idempotent` replaces it"
  ],
  [
    "an unknown kind of stickiness",
    () => change("pool: large-1", "sticky: key"),
    ":9 models.large.sticky: must be \"session\", \"user\" or \"none\""
  ],
  [
    "an unknown fallback",
    () => change("pool: large-1", "fallbacks: [small, tiny]"),
    ":9 models.large.fallbacks[1]: there is no model 'tiny'"
  ],
  [
    "a fallback of another workload",
    () => change("chat, targets", "speech, targets").replace("pool: large-1", "fallbacks: [small]"),
    ":9 models.large.fallbacks[0]: 'small' must have the same workload, chat, not speech"
  ],
  [
    "an unknown shadow",
    () => change("pool: large-1", "shadow: { model: tiny, share: 0.1 }"),
    ":9 models.large.shadow.model: there is no model 'tiny'"
  ],
  [
    "a shadow of no requests",
    () => change("pool: large-1", "shadow: { model: small, share: 0 }"),
    ":9 models.large.shadow.share: must be a number greater than 0 and at most 1"
  ],
  [
    "a shadow of videos",
    () =>
      change("pool: large-1", "shadow: { model: large, share: 1 }").replace("workload: chat\n", "workload: video\n"),
    ":9 models.large.shadow: remove it: videos have no shadow"
  ],
  [
    "cyclic fallbacks",
    () =>
      change("chat, targets", "chat, fallbacks: [large], targets").replace(
        "pool: large-1",
        "fallbacks:\n      - small"
      ),
    ":6 models.small.fallbacks[0]: forms a cycle: small → large → small",
    ":10 models.large.fallbacks[0]: forms a cycle: large → small → large"
  ],
  [
    "a model that falls back to itself",
    () => change("pool: large-1", "fallbacks: [large]"),
    ":9 models.large.fallbacks[0]: forms a cycle: large → large"
  ]
]

it.effect.each(mistakes)("a catalogue is rejected if it has %s", ([_, text, ...lines]) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(parse("gateway.yaml", text()))
    const found = error.message.split("\n")
    assert.strictEqual(found.length, lines.length, error.message)
    for (const [index, line] of lines.entries()) {
      assert.isTrue(found[index]?.startsWith(`gateway.yaml${line}`), error.message)
    }
  }))

/** Advances the clock to the next check of the file. */
const look = TestClock.adjust("1 second").pipe(Effect.andThen(Effect.promise(() => new Promise(setImmediate))))

/** A watched catalogue file and the catalogue read from it. */
const following = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  const file = `${folder}/gateway.yaml`
  yield* files.writeFileString(file, valid)
  const log: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => {
    log.push(JSON.stringify(message))
  })
  const built = yield* Layer.build(Catalogue.layer).pipe(
    Effect.provide([
      Logger.layer([logger]),
      ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_CONFIG: file }))
    ])
  )
  const catalogue = Context.get(built, Catalogue)
  return {
    current: () => catalogue.current(),
    models: () => [...catalogue.current().models.keys()],
    /** Replaces the file atomically. */
    edit: (text: string) =>
      files.writeFileString(`${file}.new`, text).pipe(Effect.andThen(files.rename(`${file}.new`, file))),
    link: (text: string) =>
      files.writeFileString(`${folder}/data`, text).pipe(
        Effect.andThen(files.symlink(`${folder}/data`, `${file}.new`)),
        Effect.andThen(files.rename(`${file}.new`, file))
      ),
    remove: files.remove(file),
    log,
    /** Checks the file until a log line includes the word. */
    until: (word: string) => Effect.repeat(look, { until: () => log.some((line) => line.includes(word)) }),
    /** Checks the file this many times. */
    looks: (times: number) => Effect.repeat(look, { times })
  }
}).pipe(Effect.provide(NodeFileSystem.layer))

describe("an edit of the catalogue file", () => {
  it.effect("takes effect without a restart, and requests in progress keep the old catalogue", () =>
    Effect.gen(function*() {
      const { current, edit, models, until } = yield* following
      const before = current()
      yield* edit(change("small:", "tiny:"))
      yield* until("catalogue reloaded")
      assert.sameMembers(models(), ["tiny", "large"])
      assert.sameMembers([...before.models.keys()], ["small", "large"])
    }))

  it.effect("with an error changes nothing and is logged once, with the path; the next valid edit takes effect", () =>
    Effect.gen(function*() {
      const { current, edit, log, until } = yield* following
      const before = current()
      yield* edit(change("weight: 0.5", "weight: heavy"))
      yield* until("models.large.targets[0].weight")
      assert.strictEqual(current(), before)
      yield* edit(change("weight: 0.5", "weight: 2"))
      yield* until("catalogue reloaded")
      assert.strictEqual(current().models.get("large")?.targets[0].weight, 2)
      assert.strictEqual(log.length, 2, log.join("\n"))
    }))

  it.effect("that deletes the file changes nothing, and its return takes effect", () =>
    Effect.gen(function*() {
      const { current, edit, log, looks, models, remove, until } = yield* following
      const before = current()
      yield* remove
      yield* until("cannot be read: check that it is a file and that this user may read it")
      yield* looks(50)
      assert.strictEqual(current(), before)
      yield* edit(change("small:", "tiny:"))
      yield* until("catalogue reloaded")
      assert.sameMembers(models(), ["tiny", "large"])
      // a file that is missing for an hour is not logged 3,600 times
      assert.strictEqual(log.length, 2, log.join("\n"))
    }))

  it.effect("is noticed behind a swapped symbolic link, as Kubernetes mounts it", () =>
    Effect.gen(function*() {
      const { link, models, until } = yield* following
      yield* link(change("small:", "tiny:"))
      yield* until("catalogue reloaded")
      assert.sameMembers(models(), ["tiny", "large"])
    }))
})

it.effect("a process does not start with an unusable catalogue", () =>
  Effect.gen(function*() {
    const files = yield* FileSystem.FileSystem
    const file = `${yield* files.makeTempDirectoryScoped()}/gateway.yaml`
    const start = Effect.flip(Layer.build(Catalogue.layer)).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_CONFIG: file })))
    )
    yield* files.writeFileString(file, "models: {}")
    assert.strictEqual((yield* start).message, `${file}:1 providers: is required`)
    yield* files.remove(file)
    assert.strictEqual(
      (yield* start).message,
      `${file}: cannot be read: check that it is a file and that this user may read it`
    )
  }).pipe(Effect.provide(NodeFileSystem.layer)))
