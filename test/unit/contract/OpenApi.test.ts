/** The OpenAPI document is well formed and complete, and its examples are valid. */
import { assert, describe, it } from "@effect/vitest"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { type RulesetDefinition, Spectral } from "@stoplight/spectral-core"
import { oas } from "@stoplight/spectral-rulesets"
import { Ajv2020 } from "ajv/dist/2020.js"
import { type Context, Effect, Layer, Result, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { BodyMemory } from "../../../services/ingress/body/BodyMemory.ts"
import { Admission } from "../../../services/ingress/request/Admission.ts"
import { Drain } from "../../../shared/process/Drain.ts"
import { CrossOrigin } from "../../../services/ingress/exchange/CrossOrigin.ts"
import { Front } from "../../../services/ingress/exchange/Front.ts"
import { Upgrades } from "../../../services/ingress/exchange/Upgrades.ts"
import { routes } from "../../../services/ingress/Ingress.ts"
import { RequestLog } from "../../../services/ingress/record/RequestLog.ts"
import { document } from "../../../services/ingress/reference/Document.ts"
import { render } from "../../../services/ingress/reference/page/Page.ts"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { Presence } from "../../../shared/bus/provision/Presence.ts"
import type { Parameter } from "../../../services/ingress/reference/Route.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { ClientFiles } from "../../../shared/files/ClientFiles.ts"
import { ResultFiles } from "../../../shared/files/ResultFiles.ts"
import { SignedUrl } from "../../../shared/files/SignedUrl.ts"
import { Responses } from "../../../shared/records/Responses.ts"
import { Owners } from "../../../shared/records/Owners.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Batches } from "../../../shared/batches/Batches.ts"
import { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import { TaskStore } from "../../../shared/tasks/TaskStore.ts"
import { Tasks } from "../../../shared/tasks/Tasks.ts"

const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path }))
)

/** The routes that ingress adds to its front and its router, built without its dependencies. */
const served = Effect.gen(function*() {
  const router = yield* HttpRouter.make
  const routes: Array<{ readonly method: string; readonly path: string }> = []
  const recording = HttpRouter.HttpRouter.of({
    ...router,
    add: (method, path, handler, options) => {
      routes.push({ method, path })
      return router.add(method, path, handler, options)
    },
    addAll: (added) => {
      routes.push(...added)
      return router.addAll(added)
    }
  })
  const front = Front.of({
    take: () => false,
    add: (operations) => {
      routes.push(...operations.flatMap(({ paths }) => paths.map((path) => ({ method: "POST", path: asRoute(path) }))))
      return Effect.void
    }
  })
  yield* Layer.build(everything).pipe(
    Effect.provideService(HttpRouter.HttpRouter, recording),
    Effect.provideService(Front, front),
    Effect.provide(Upgrades.layer)
  )
  return routes
}).pipe(Effect.scoped)

/** A stub for a dependency of the routes, which call none before the first request. */
const untouched = <I, S>(service: Context.Service<I, S>) => Layer.succeed(service, {} as S)

const everything = routes.pipe(
  Layer.provide([
    untouched(Admission),
    untouched(BodyMemory),
    untouched(CrossOrigin),
    untouched(Models),
    untouched(Drain),
    untouched(RequestLog),
    untouched(JobClient),
    untouched(KeyRing),
    untouched(Nats),
    untouched(Owners),
    untouched(Responses),
    untouched(ClientFiles),
    untouched(ResultFiles),
    untouched(SignedUrl),
    untouched(AnswerTasks),
    untouched(Batches),
    untouched(TaskStore),
    untouched(Tasks),
    Layer.mock(Presence, { answerWith: () => Effect.void })
  ])
)

interface FieldSchema {
  readonly description?: string
  readonly [keyword: string]: unknown
}

/** The fields of a schema and of all objects in it, with their paths. A condition on a described field is none. */
function* fieldsIn(
  schema: FieldSchema,
  path: string,
  known: ReadonlySet<string> = new Set()
): Generator<readonly [path: string, schema: FieldSchema]> {
  const { allOf, anyOf, if: condition, items, oneOf, properties = {}, then } = schema as
    & Readonly<
      Record<"allOf" | "anyOf" | "oneOf", ReadonlyArray<FieldSchema> | undefined>
    >
    & Readonly<Record<"if" | "then" | "items", FieldSchema | undefined>>
    & {
      readonly properties?: Readonly<Record<string, FieldSchema>>
    }
  for (const [name, field] of Object.entries(properties)) {
    if (known.has(name)) continue
    yield [`${path}.${name}`, field]
    yield* fieldsIn(field, `${path}.${name}`)
  }
  const all = new Set([...known, ...Object.keys(properties)])
  for (const part of [...(allOf ?? []), ...(anyOf ?? []), ...(oneOf ?? [])]) yield* fieldsIn(part, path, all)
  for (const part of [condition, then]) if (part !== undefined) yield* fieldsIn(part, path, all)
  if (items !== undefined) yield* fieldsIn(items, `${path}[]`)
}

const fields = Object.entries(document.components.schemas).flatMap(([name, schema]) => [...fieldsIn(schema, name)])

const message = (text: string) => ({ role: "user", content: [{ text }] })

/** The path as the router writes it: a wildcard for a model's name, a segment for any other parameter. */
const asRoute = (path: string): string =>
  path.replace(/\{model\}.*$/, "*").replaceAll(
    /\{task_id\}|\{response_id\}|\{file_id\}|\{batch_id\}|\{message_batch_id\}|\{id\}/g,
    ":id"
  )

/** The linters know no WebSockets: they miss a successful response that is not 101. */
const ofSockets = /#\/paths\/~1v1~1responses\/get\/responses|paths\.\/v1\/responses\.get\.responses/

describe("the OpenAPI document", () => {
  it("passes Redocly's linter", async () => {
    const config = await createConfig({ extends: ["recommended"] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    const said = problems.map(({ location: [at], message, ruleId }) => `${ruleId}: ${message} (${at?.pointer})`)
    assert.deepStrictEqual(said.filter((problem) => !ofSockets.test(problem)), [])
  })

  it("passes Spectral", async () => {
    const spectral = new Spectral()
    spectral.setRuleset({ extends: [[oas as RulesetDefinition, "recommended"]] })
    const problems = await spectral.run(JSON.stringify(document))
    const said = problems.map(({ code, message, path }) => `${code}: ${message} (${path.join(".")})`)
    assert.deepStrictEqual(said.filter((problem) => !ofSockets.test(problem)), [])
  })

  it("describes every field of every request and answer", () => {
    assert.isNotEmpty(fields)
    assert.deepStrictEqual(fields.filter(([, { description = "" }]) => description === "").map(([path]) => path), [])
  })

  it("states a default that the schema accepts", () => {
    const ajv = new Ajv2020({ strict: false })
    const defaults = fields.filter(([, schema]) => "default" in schema)
    assert.isNotEmpty(defaults)
    for (const [path, schema] of defaults) assert.isTrue(ajv.validate(schema, schema["default"]), path)
  })

  it("has no two operations with one title, in the document and on the page", () => {
    const titles = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ summary }) => summary)
    )
    const shown = [...render().matchAll(/<h[1-6][^>]*>(.*?)<\/h[1-6]>/gu)].map(([, title = ""]) =>
      title.replace(/<[^>]+>/gu, "")
    )
    assert.includeMembers(shown, titles)
    for (const all of [titles, shown]) assert.deepStrictEqual(all.filter((title, at) => all.indexOf(title) !== at), [])
  })

  it.effect("describes every route of the ingress and no other", () =>
    Effect.gen(function*() {
      // a route for ids of a former form has an expression
      const routes = new Set((yield* served).map(({ method, path }) => `${method} ${path.replace(/\(.*\)$/, "")}`))
      // the router also serves the path above a wildcard
      const wild = [...routes].filter((route) => route.endsWith("/*")).map((route) => route.slice(0, -2))
      const mentioned = described.map(({ method, path }) => `${method} ${asRoute(path)}`)
      assert.sameMembers([...new Set(mentioned)].filter((route) => !wild.includes(route)), [...routes])
    }))

  it("has a valid example for each form of each operation", () => {
    for (const { examples, form, name, paths: [path], request, response, responseTypes, streams } of operations) {
      const decode = Schema.decodeUnknownResult(request)
      const decodeForm = form === undefined ? undefined : Schema.decodeUnknownResult(form)
      const decodeAnswer = Schema.decodeUnknownResult(response as Schema.Codec<unknown, unknown>)
      const all = Object.entries(examples)
      assert.strictEqual(all.some(([, { isForm }]) => isForm === true), form !== undefined, name)
      assert.isTrue(responseTypes !== undefined || all.some(([, { answer }]) => answer !== undefined), name)
      for (const [what, { answer, body, isForm = false, model }] of all) {
        const whole = path.includes("{model}") ? body : { model, ...body }
        const decoded = isForm ? decodeForm?.(formOf(whole)) : decode(whole)
        assert.isTrue(decoded !== undefined && Result.isSuccess(decoded), `${name}, ${what}`)
        if (answer === undefined) continue
        assert.strictEqual(typeof answer === "string", streams(body), `${name}, ${what}`)
        if (typeof answer === "object") assert.isTrue(Result.isSuccess(decodeAnswer(answer)), `${name}, ${what}`)
      }
    }
  })
})

/** Bodies that the code rejects for reasons a schema can express: the error, the schema's name and the body. */
const wrong: ReadonlyArray<readonly [what: string, operation: string, body: Readonly<Record<string, unknown>>]> = [
  ["a video without a duration", "video.generations", { prompt: "a", duration: 0 }],
  ["an invalid size", "images.generations", { prompt: "a", size: "big" }],
  ["a prompt in both forms", "images.generations", { prompt: "a", input: { messages: [message("a")] } }],
  ["no prompt", "images.generations", {}],
  ["null as the only prompt", "images.generations", { prompt: null }],
  ["a content part with both text and image", "images.generations", {
    input: { messages: [{ role: "user", content: [{ text: "a", image: "b" }] }] }
  }],
  ["no picture", "images.edits", { prompt: "a" }],
  ["too many images", "images.edits", { prompt: "a", image: Array.from({ length: 17 }, () => "a") }],
  ["a text that is too long", "audio.speech", { input: "😀".repeat(4_097), voice: "nova" }],
  ["a user message without content", "chat.completions", { messages: [{ role: "user" }] }],
  ["a user message with null content", "chat.completions", { messages: [{ role: "user", content: null }] }],
  ["a tool message without a call id", "chat.completions", { messages: [{ role: "tool", content: "a" }] }],
  ["a retained message without content", "responses.compact", { input: [{ role: "user" }] }],
  ["an unknown aspect ratio", "generateContent", {
    contents: [{ parts: [{ text: "a" }] }],
    generationConfig: { imageConfig: { aspectRatio: "wide" } }
  }]
]

const right: ReadonlyArray<readonly [operation: string, body: Readonly<Record<string, unknown>>]> = [
  ["video.generations", { prompt: "a", width: 3841, height: 2160, duration: 30, seed: -1, n: 2 }],
  ["images.generations", { prompt: "a", size: "64*128" }],
  ["images.generations", { prompt: "a", size: "auto", input: null }],
  ["images.generations", { input: { messages: [message("a")] } }],
  ["images.edits", { prompt: "a", image: "b", input: null }],
  ["audio.speech", { input: "😀".repeat(4_096), voice: "nova" }],
  ["chat.completions", { messages: [{ role: "assistant" }, { role: "tool", content: "a", tool_call_id: "b" }] }]
]

describe("the schemas of the OpenAPI document", () => {
  const ajv = new Ajv2020({ strict: false })
  ajv.addSchema(document, "document")
  const operationOf = (name: string) => operations.find((one) => one.name === name) ?? assert.fail(`no ${name}`)
  /** Whether the document and the code accept a body. */
  const taken = (name: string, body: object) => {
    const { paths: [path], request } = operationOf(name)
    const whole = path.includes("{model}") ? body : { model: "a", ...body }
    const pointer = `/paths/${path.replaceAll("/", "~1")}/post/requestBody/content/application~1json/schema`
    const validate = ajv.compile({ $ref: `document#${encodeURI(pointer)}` })
    return {
      document: validate(whole),
      code: Result.isSuccess(Schema.decodeResult(request as Schema.Codec<unknown, unknown>)(whole))
    }
  }

  it.each(wrong)("reject %s, as the code does", (_, operation, body) => {
    assert.deepStrictEqual(taken(operation, body), { document: false, code: false })
  })

  it.each(right)("of %s accept what the code accepts", (operation, body) => {
    assert.deepStrictEqual(taken(operation, body), { document: true, code: true })
  })

  it("require one of the version headers and take any text", () => {
    const parameters = document.paths["/v1/messages"]?.["post"]?.parameters ?? []
    const versions = parameters.filter((one): one is Parameter => "name" in one && one.name.endsWith("-version"))
    assert.deepStrictEqual(versions.map(({ name }) => name), ["vendor-version", "anthropic-version"])
    for (const { description, schema } of versions) {
      assert.match(description, /Required unless (vendor|anthropic)-version is sent/)
      assert.deepInclude(schema, { minLength: 1 })
    }
  })
})

const formOf = (fields: Readonly<Record<string, unknown>>): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value))
  return form
}
