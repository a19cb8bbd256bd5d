/** `npm run config -- check FILE`: what it prints about a catalogue, line by line, and its exit code. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Models from "../../../shared/catalogue/Models.ts"
import { adminOutcome } from "../../fixture/admin/AdminHere.ts"
import { workingTree } from "../../fixture/gateway/Release.ts"
import { inherited } from "../../fixture/general/Inherited.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "config-check-"))
  await writeFile(join(folder, "key"), "secret")
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const environment = { KNOWN_KEY: "secret", EMPTY_KEY: "" }

/** What the command does with a file, with the file's name replaced by `FILE`. */
interface Outcome {
  readonly code: number
  readonly lines: ReadonlyArray<string>
}

const outcomeOf = (code: number, output: string, file: string): Outcome => ({
  code,
  lines: output.trimEnd().replaceAll(file, "FILE").replaceAll(folder, "FOLDER").split("\n")
})

const run = async (command: string, file: string, ...flags: ReadonlyArray<string>): Promise<Outcome> => {
  const { code, output } = await adminOutcome(["config", command, ...flags, file], environment)
  return outcomeOf(code, output, file)
}

/** The same in a process. */
const runAsProgram = (command: string, file: string): Outcome => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [...workingTree.argumentsOf("admin"), "config", command, file],
    { encoding: "utf8", env: { ...inherited, ...environment } }
  )
  return outcomeOf(status ?? -1, stdout + stderr, file)
}

const write = async (text: string): Promise<string> => {
  const file = join(folder, "gateway.yaml")
  await writeFile(file, text.replaceAll("FOLDER", folder).trimStart())
  return file
}

const check = async (text: string) => run("check", await write(text))

describe("config check", () => {
  it("finds nothing wrong with a good catalogue", async () => {
    assert.deepStrictEqual(
      await check(`
providers:
  a: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${KNOWN_KEY}", limits: { concurrency: 600, requestsPerMinute: 60 } }
  b: { protocol: openai, baseUrl: "http://b/v1", apiKey: "\${file:FOLDER/key}" }
models:
  one: { workload: chat, fallbacks: [two], targets: [{ provider: a }] }
  two: { workload: chat, targets: [{ provider: a, model: one }, { provider: b }] }
`),
      { code: 0, lines: ["FILE: 2 models, 2 providers"] }
    )
  })

  it("warns of settings that are valid but probably unintended", async () => {
    const { code, lines } = await check(`
providers:
  known: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${KNOWN_KEY}" }
  unset:
    protocol: openai
    baseUrl: "http://b/v1"
    apiKey: "\${NOWHERE_KEY}"
  empty: { protocol: openai, baseUrl: "http://b/v1", apiKey: "\${EMPTY_KEY}" }
  gone: { protocol: openai, baseUrl: "http://b/v1", apiKey: "\${file:FOLDER/none}" }
  unused: { protocol: local, redispatch: neverSent }
  slow:
    protocol: local
    timeouts: { totalMs: 90000 }
    limits:
      concurrency: 21
      requestsPerMinute: 10
      tokensPerMinute: 10
models:
  one:
    workload: chat
    fallbacks:
      - two
      - three
      - four
    targets: [{ provider: known }, { provider: unset, model: x }]
  two: { workload: chat, targets: [{ provider: unset, model: x }] }
  three: { workload: chat, fallbacks: [four], targets: [{ provider: empty }] }
  four: { workload: chat, targets: [{ provider: gone }, { provider: slow }] }
`)
    assert.deepStrictEqual(lines, [
      "FILE:6 providers.unset.apiKey: warning: NOWHERE_KEY is not set here",
      "FILE:7 providers.empty.apiKey: warning: EMPTY_KEY is not set here",
      "FILE:8 providers.gone.apiKey: warning: FOLDER/none cannot be read here",
      "FILE:9 providers.unused.redispatch: warning: is deprecated: write `idempotent: false` instead",
      "FILE:15 providers.slow.limits.requestsPerMinute: warning: can never apply: no request takes less than one of the " +
      "10 tokens per minute",
      "FILE:14 providers.slow.limits.concurrency: warning: can never apply: at 10 requests per minute and at most 2 " +
      "minutes each, there are never more than 20 at once",
      "FILE:9 providers.unused: warning: no model uses it",
      "FILE:21 models.one.fallbacks[0]: warning: is never reached: every target of 'two' is tried before it",
      "FILE:23 models.one.fallbacks[2]: warning: is never reached: every target of 'four' is tried before it",
      "FILE: 4 models, 6 providers"
    ])
    assert.strictEqual(code, 0)
  })

  // the reloads of a running gateway refuse the same references: see CatalogueReload.test.ts
  const provider = (settings: string) => `
providers: { a: { protocol: ${settings} } }
models: { one: { workload: chat, targets: [{ provider: a }] } }
`
  const openai = (apiKey: string) => provider(`openai, baseUrl: "http://a/v1", apiKey: "${apiKey}"`)
  it.each<readonly [name: string, text: string, code: number, warning: RegExp | undefined]>([
    ["a key that is set", openai("${KNOWN_KEY}"), 0, undefined],
    ["a key that is not set", openai("${KNOWN_KEI}"), 1, /apiKey: warning: KNOWN_KEI is not set here/],
    ["an empty key", openai("${EMPTY_KEY}"), 1, /apiKey: warning: EMPTY_KEY is not set here/],
    [
      "a file that does not exist",
      openai("${file:FOLDER/none}"),
      1,
      /apiKey: warning: FOLDER\/none cannot be read here/
    ],
    [
      "a secret among a package's settings",
      provider("ai-sdk, options: { package: \"effect\", settings: { headers: { authorization: \"${NO_HEADER}\" } } }"),
      1,
      /options\.settings\.headers\.authorization: warning: NO_HEADER is not set here/
    ],
    [
      "a guardrail's secret",
      `guardrail: { url: "http://g", secret: "\${NO_SECRET}" }${provider("local")}`,
      1,
      /FILE:1 guardrail\.secret: warning: NO_SECRET is not set here/
    ],
    ["another warning", provider("local, redispatch: neverSent"), 1, /is deprecated/],
    ["a provider that is switched off", provider("local, disabled: true"), 0, /warning: is switched off/]
  ])("with --strict judges %s", async (_name, text, code, warning) => {
    const file = await write(text)
    const strict = await run("check", file, "--strict")
    assert.strictEqual(strict.code, code, strict.lines.join("\n"))
    if (warning !== undefined) assert.match(strict.lines.join("\n"), warning)
    if (code === 1) assert.match(strict.lines.at(-1) ?? "", /FILE: 1 warning, and --strict allows none/)
    assert.strictEqual((await run("check", file)).code, 0)
  })

  it("warns of a fallback with a smaller context window, and of a first token awaited for longer than the queue", async () => {
    const { code, lines } = await check(`
providers:
  slow: { protocol: local, timeouts: { firstTokenMs: 30001 } }
  quick: { protocol: local, timeouts: { firstTokenMs: 30000 } }
models:
  long: { workload: chat, contextWindow: 200000, fallbacks: [short, longer, unknown], targets: [{ provider: slow }] }
  short: { workload: chat, targets: [{ provider: quick, contextWindow: 8192 }, { provider: slow, contextWindow: 100000 }] }
  longer: { workload: chat, contextWindow: 8192, targets: [{ provider: quick, contextWindow: 1000000 }] }
  unknown: { workload: chat, targets: [{ provider: quick }], fallbacks: [short] }
`)
    assert.deepStrictEqual([code, ...lines], [
      0,
      "FILE:2 providers.slow.timeouts.firstTokenMs: warning: is longer than GATEWAY_QUEUE_TIMEOUT_MS, 30000: a request is " +
      "not retried after it",
      "FILE:5 models.long.fallbacks[0]: warning: has a smaller context window, 100000 tokens instead of 200000: it rejects " +
      "the longest requests",
      "FILE: 4 models, 2 providers"
    ])
  })

  it("warns of continuations that no target can make, or that a protocol knows only in one way", async () => {
    const { code, lines } = await check(`
providers:
  own: { protocol: local }
  google: { protocol: gemini, baseUrl: "http://b/v1beta" }
models:
  vain: { workload: chat, continuation: true, fallbacks: [also], targets: [{ provider: own }] }
  also: { workload: chat, continuation: true, targets: [{ provider: google, model: a }] }
  good: { workload: chat, continuation: true, targets: [{ provider: own }], fallbacks: [able] }
  able: { workload: chat, targets: [{ provider: google, continues: assistant }] }
  odd: { workload: chat, targets: [{ provider: google, continues: prefix }] }
`)
    assert.deepStrictEqual([code, ...lines.filter((line) => line.includes("continu"))], [
      0,
      "FILE:5 models.vain.continuation: warning: has no effect: no chat target has `continues`",
      "FILE:6 models.also.continuation: warning: has no effect: no chat target has `continues`",
      "FILE:9 models.odd.targets[0].continues: warning: has the effect of `assistant`: only the protocol openai has `prefix`"
    ])
  })

  it("warns of models whose protocols can never serve their operations", async () => {
    const { code, lines } = await check(`
providers:
  open: { protocol: openai, baseUrl: "http://a/v1" }
  google: { protocol: gemini, baseUrl: "http://b/v1beta" }
  claude: { protocol: anthropic, baseUrl: "http://c" }
models:
  film: { workload: video, targets: [{ provider: open }] }
  vectors: { workload: embeddings, targets: [{ provider: open }, { provider: claude }] }
  picture: { workload: images, targets: [{ provider: google }] }
  chat: { workload: chat, targets: [{ provider: claude }, { provider: google }] }
  safe: { workload: chat, targets: [{ provider: claude }], fallbacks: [spare] }
  spare: { workload: chat, targets: [{ provider: open }] }
`)
    assert.deepStrictEqual([code, ...lines], [
      0,
      "FILE:6 models.film.targets[0].provider: warning: can never answer: the protocol openai serves no operation of the " +
      "workload video",
      "FILE:7 models.vectors.targets[1].provider: warning: can never answer: the protocol anthropic serves no operation of " +
      "the workload embeddings",
      "FILE:8 models.picture.targets: warning: no target serves images.edits or images.generations: that needs the " +
      "protocol ai-sdk, dashscope, local or openai",
      "FILE: 6 models, 3 providers"
    ])
  })

  it("reports packages of the AI SDK that are missing or not named", async () => {
    const checked = await check(`
providers:
  there: { protocol: ai-sdk, options: { package: "@ai-sdk/openai" } }
  missing: { protocol: ai-sdk, options: { package: "@ai-sdk/unheard-of" } }
models:
  one: { workload: images, targets: [{ provider: there }, { provider: missing }] }
`)
    assert.deepStrictEqual(checked, {
      code: 0,
      lines: [
        "FILE:3 providers.missing.options.package: warning: '@ai-sdk/unheard-of' is not installed here: " +
        "npm install --save-exact @ai-sdk/unheard-of",
        "FILE: 1 model, 2 providers"
      ]
    })
    const unnamed = await check(`
providers:
  a: { protocol: ai-sdk, options: {} }
models:
  one: { workload: images, targets: [{ provider: a }] }
`)
    assert.deepStrictEqual(unnamed, {
      code: 1,
      lines: ["FILE:2 providers.a.options.package: is required: the name of an installed package"]
    })
  })

  it("names every mistake in the options of a protocol", async () => {
    const { code, lines } = await check(`
providers:
  open: { protocol: openai, baseUrl: "http://a/v1", options: { maxTokenField: max_tokens, apis: [chat] } }
  claude:
    protocol: anthropic
    baseUrl: "http://b"
    options:
      maxTokens: none
  google: { protocol: gemini, baseUrl: "http://c/v1beta", options: { thinking: budget } }
models:
  one: { workload: chat, targets: [{ provider: open }, { provider: claude }, { provider: google }] }
`)
    assert.deepStrictEqual([code, ...lines], [
      1,
      "FILE:2 providers.open.options.maxTokenField: is unknown: the known fields are maxTokensField, promptCacheKey, " +
      "cacheControl, apis, userField and encryptedReasoning",
      "FILE:2 providers.open.options.apis[0]: must be \"chatCompletions\" or \"responses\"",
      "FILE:7 providers.claude.options.maxTokens: must be a whole number greater than 0"
    ])
  })

  it("prints the models' part, which ingress accepts in place of the whole", async () => {
    const file = join(folder, "whole.yaml")
    const whole = `
providers:
  a: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${KNOWN_KEY}" }
models:
  one: { workload: chat, price: { perRequest: 1 }, targets: [{ provider: a }] }
  "2: two": { workload: images, pool: gpu, targets: [{ provider: a }], fallbacks: [three] }
  three: { workload: images, targets: [{ provider: a }] }
`
    await writeFile(file, whole)
    const { code, lines } = await run("models", file)
    assert.strictEqual(code, 0)
    const part = lines.join("\n")
    assert.notMatch(part, /provider|KNOWN_KEY|http/)
    const [models, ofWhole] = await Promise.all(
      [part, whole].map((text) => Effect.runPromise(Models.parse("models.yaml", text)))
    )
    assert.deepStrictEqual(models, ofWhole)
    assert.deepStrictEqual(models?.models.get("2: two"), { workload: "images", pool: "gpu" })
  })

  it("names every mistake with its line and exits with 1", async () => {
    const file = await write(`
providers:
  a: { protocol: local }
models:
  one: { workload: chat, targets: [{ provider: b }] }
  two: { workload: chat, targets: [{ provider: a }], fallbacks: [two] }
`)
    const expected = {
      code: 1,
      lines: [
        "FILE:4 models.one.targets[0].provider: there is no provider 'b'",
        "FILE:5 models.two.fallbacks[0]: forms a cycle: two → two"
      ]
    }
    assert.deepStrictEqual(await run("check", file), expected)
    assert.deepStrictEqual(runAsProgram("check", file), expected)
  })

  it("rejects a key in plain text, and does not repeat it", async () => {
    const { code, lines } = await check(`
providers:
  a: { protocol: openai, baseUrl: "http://a/v1", apiKey: sk-1234 }
models:
  one: { workload: chat, targets: [{ provider: a }] }
`)
    assert.deepStrictEqual([code, ...lines], [
      1,
      "FILE:2 providers.a.apiKey: must be a reference such as ${NAME} or ${file:/path}, not the secret itself"
    ])
  })

  it("reports a missing file", async () => {
    const { code, lines } = await run("check", join(folder, "none.yaml"))
    assert.deepStrictEqual([code, ...lines], [
      1,
      "FILE: cannot be read: check that it is a file and that this user may read it"
    ])
  })
})
