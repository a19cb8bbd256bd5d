/** All processes take an edit of the catalogue or none does: who objects, and how an edit spreads among them. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { type Config, ConfigProvider, Context, Effect, FileSystem, Layer, Logger, Metric } from "effect"
import { TestClock } from "effect/testing"
import { Catalogue, Needs } from "../../../shared/catalogue/Catalogue.ts"
import {
  Agreement,
  objectionTo,
  type Opinion,
  type Revision,
  unread
} from "../../../shared/catalogue/file/Agreement.ts"
import type { CatalogueInvalid } from "../../../shared/catalogue/CatalogueFile.ts"
import * as Models from "../../../shared/catalogue/Models.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

const old = { whole: "w0", models: "m0" }
const edited = { whole: "w1", models: "m1" }
const keysEdited = { whole: "w2", models: "m0" }
const candidate = (revision: Revision, mistake?: string): Required<Opinion>["candidate"] => ({ revision, mistake })

// each verdict follows from the promise in the README: all processes take an edit or none does, and a pod that started with another
// file holds up nothing
it.each<
  readonly [name: string, edit: Parameters<typeof objectionTo>[0], opinion: Opinion, objection: string | undefined]
>([
  ["that has read it", { from: old, to: edited }, { current: old, candidate: candidate(edited) }, undefined],
  ["that uses it", { from: old, to: edited }, { current: edited }, undefined],
  ["that has not read it", { from: old, to: edited }, { current: old }, unread],
  ["that cannot use it", { from: old, to: edited }, { current: old, candidate: candidate(edited, "no key") }, "no key"],
  [
    "that cannot read its file",
    { from: old, to: edited },
    { current: old, candidate: candidate({}, "bad YAML") },
    "bad YAML"
  ],
  ["that has read a later one", { from: old, to: edited }, { current: old, candidate: candidate(keysEdited) }, unread],
  ["that cannot use an earlier one", { from: old, to: edited }, {
    current: old,
    candidate: candidate(keysEdited, "no key")
  }, unread],
  ["that started with another file", { from: old, to: edited }, { current: { whole: "w9", models: "m9" } }, undefined],
  [
    "that started with another file and cannot use this one",
    { from: old, to: edited },
    { current: { whole: "w9", models: "m9" }, candidate: candidate(edited, "no key") },
    "no key"
  ],
  // ingress, which knows only models
  ["that knows only models and has read them", { from: old, to: edited }, {
    current: { models: "m0" },
    candidate: candidate({ models: "m1" })
  }, undefined],
  ["that knows only models and has not read them", { from: old, to: edited }, { current: { models: "m0" } }, unread],
  [
    "that knows only models, about one of keys",
    { from: old, to: keysEdited },
    { current: { models: "m0" } },
    undefined
  ],
  ["a worker that has the models without a key", { from: { models: "m0" }, to: { models: "m1" } }, {
    current: old,
    candidate: candidate(edited, "no key")
  }, "no key"]
])("the objection of a process %s", (_name, edit, opinion, objection) => {
  assert.strictEqual(objectionTo(edit, opinion), objection)
})

const catalogue = (model: string, key = "OLD_KEY") => `
providers: { p: { protocol: openai, baseUrl: "http://p/v1", apiKey: "\${${key}}" } }
models: { ${model}: { workload: chat, targets: [{ provider: p }] } }
`

it("the whole file and the part for ingress have the same models", () => {
  const text = `
providers: { p: { protocol: openai, baseUrl: "http://p/v1" } }
models:
  b: { workload: chat, targets: [{ provider: p, price: { inputPerMillion: 1, outputPerMillion: 2 } }] }
  a: { workload: chat, targets: [{ provider: p, model: gpt-5 }], fallbacks: [b] }
`
  const part = Effect.runSync(Models.parse("x", text))
  const printed = JSON.stringify({ models: Object.fromEntries(part.models) })
  assert.deepStrictEqual(Models.revisionOf(printed), Models.revisionOf(text))
  assert.isDefined(Models.revisionOf(text).models)
  assert.notDeepEqual(Models.revisionOf(text.replace("gpt-5", "gpt-4o")), Models.revisionOf(text))
})

/** Connects the processes of a test as NATS would. */
const makeBus = () => {
  const members: Array<{ readonly opinion: () => Opinion; readonly agreed: (to: Revision) => void }> = []
  const agreement: Context.Service.Shape<typeof Agreement> = {
    join: (opinion, agreed) => Effect.sync(() => void members.push({ opinion, agreed })),
    objections: (edit) => Effect.sync(() => members.flatMap(({ opinion }) => objectionTo(edit, opinion()) ?? [])),
    announce: ({ to }) => Effect.sync(() => members.forEach(({ agreed }) => agreed(to)))
  }
  return Layer.succeed(Agreement, agreement)
}

/** A worker that lacks the key MISSING, another worker, and an ingress, which follow files of their own. */
const fleet = Effect.gen(function*() {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  const bus = makeBus()
  const needs = Layer.succeed(Needs, (to) =>
    Effect.succeed(
      to.providers.get("p")?.apiKey === "${MISSING}"
        ? [{ path: ["providers", "p", "apiKey"], message: "MISSING is not set" }]
        : []
    ))
  const start = Effect.fnUntraced(
    function*<A>(
      name: string,
      service: Context.Key<A, { readonly current: () => { readonly models: ReadonlyMap<string, unknown> } }>,
      layer: Layer.Layer<A, Config.ConfigError | CatalogueInvalid, FileSystem.FileSystem>
    ) {
      const file = `${folder}/${name}.yaml`
      yield* files.writeFileString(file, catalogue("old"))
      const log: Array<string> = []
      const built = yield* Layer.build(layer).pipe(
        Effect.provide([
          bus,
          Logger.layer([Logger.make<unknown, void>(({ message }) => void log.push(JSON.stringify(message)))]),
          ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_CONFIG: file }))
        ])
      )
      const edit = (text: string) =>
        Effect.andThen(files.writeFileString(`${file}.new`, text), files.rename(`${file}.new`, file))
      return { edit, log, models: () => [...Context.get(built, service).current().models.keys()] }
    }
  )
  const lacking = yield* start("lacking", Catalogue, Layer.fresh(Catalogue.layer).pipe(Layer.provide(needs)))
  const worker = yield* start("worker", Catalogue, Layer.fresh(Catalogue.layer))
  const ingress = yield* start("ingress", Models.Models, Layer.fresh(Models.Models.layer))
  const all = [lacking, worker, ingress]
  const look = TestClock.adjust("1 second").pipe(Effect.andThen(Effect.promise(() => new Promise(setImmediate))))
  return {
    lacking,
    worker,
    ingress,
    editAll: (text: string) => Effect.forEach(all, ({ edit }) => edit(text), { discard: true }),
    models: () => all.map(({ models }) => models().join()),
    looks: (times: number) => Effect.repeat(look, { times }),
    until: (isDone: () => boolean) => Effect.repeat(look, { until: isDone })
  }
}).pipe(Effect.provide(NodeFileSystem.layer))

const isLogged = ({ log }: { readonly log: ReadonlyArray<string> }, word: string) =>
  log.some((line) => line.includes(word))

describe("an edit of the catalogue", () => {
  it.effect("is taken by none if a worker lacks a key, and then by all once it is corrected", () =>
    Effect.gen(function*() {
      const { editAll, ingress, lacking, looks, models, until, worker } = yield* fleet
      yield* editAll(catalogue("new", "MISSING"))
      yield* until(() => [lacking, worker, ingress].every((one) => isLogged(one, "MISSING is not set")))
      assert.include(lacking.log.join(), "lacking.yaml:2 providers.p.apiKey: MISSING is not set")
      yield* looks(60)
      // each reason once, however often the processes ask
      for (const { log } of [lacking, worker, ingress]) assert.lengthOf(log, new Set(log).size, log.join("\n"))
      assert.deepStrictEqual(models(), ["old", "old", "old"])
      const refused = yield* Metric.value(Metrics.catalogueRefused())
      assert.strictEqual(refused.value, 1)
      yield* editAll(catalogue("new"))
      yield* until(() => models().every((names) => names === "new"))
    }))

  it.effect("waits for the process whose file comes last", () =>
    Effect.gen(function*() {
      const { ingress, lacking, looks, models, until, worker } = yield* fleet
      yield* Effect.forEach([lacking, ingress], ({ edit }) => edit(catalogue("new")))
      yield* looks(30)
      assert.deepStrictEqual(models(), ["old", "old", "old"])
      yield* worker.edit(catalogue("new"))
      yield* until(() => models().every((names) => names === "new"))
    }))

  it.effect("that was undone is forgotten", () =>
    Effect.gen(function*() {
      const { editAll, lacking, looks, models, until } = yield* fleet
      yield* editAll(catalogue("new", "MISSING"))
      yield* until(() => isLogged(lacking, "MISSING is not set"))
      yield* editAll(catalogue("old"))
      yield* Effect.repeat(Effect.andThen(looks(1), Metric.value(Metrics.catalogueRefused())), {
        until: ({ value }) => value === 0
      })
      assert.deepStrictEqual(models(), ["old", "old", "old"])
    }))

  it.effect("of providers that workers refuse changes the models of no ingress", () =>
    Effect.gen(function*() {
      const { editAll, ingress, models, until } = yield* fleet
      yield* editAll(catalogue("new").replace("[{ provider: p }]", "[{ provider: nowhere }]"))
      yield* until(() => isLogged(ingress, "nowhere"))
      assert.deepStrictEqual(models(), ["old", "old", "old"])
    }))
})
