/** `/openapi.json` and `/docs` describe what ingress does. */
import { otherWorkloads } from "../../fixture/gateway/Gateway.ts"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import * as oazapfts from "oazapfts"
import { beforeAll } from "vitest"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({ services: otherWorkloads })

type Content = Record<
  string,
  { readonly schema: object; readonly examples?: Record<string, { readonly value: unknown }> }
>

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly security: ReadonlyArray<Record<string, unknown>>
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Record<string, { readonly headers: Record<string, unknown>; readonly content?: Content }>
}

interface Document {
  readonly openapi: string
  readonly paths: Record<string, Readonly<Record<string, Described>>>
  readonly components: {
    readonly schemas: Record<string, object>
    readonly headers: Record<string, object>
    readonly securitySchemes: Record<string, Record<string, string>>
  }
}

let document: Document

beforeAll(async () => {
  document = await (await fetch(`${shared().url}/openapi.json`)).json() as Document
})

const described = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
  )

/** Every object in a value. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return
  yield value as Record<string, unknown>
  for (const inner of Object.values(value)) yield* objectsIn(inner)
}

const typeOf = (response: Response): string => response.headers.get("content-type")?.split(";")[0] ?? ""

/** One for all answers, so that it compiles each component of the document once. */
const ajv = new Ajv2020({ strict: false, validateFormats: false })

/** By the schema's JSON, since many answers have the same. */
const validators = new Map<string, ValidateFunction>()

const validatorOf = (schema: object): ValidateFunction => {
  const text = JSON.stringify(schema).replaceAll("\"#/components/", "\"document#/components/")
  let validate = validators.get(text)
  if (validate === undefined) {
    if (validators.size === 0) ajv.addSchema({ components: document.components }, "document")
    validate = ajv.compile(JSON.parse(text) as object)
    validators.set(text, validate)
  }
  return validate
}

/** Asserts that an answer is one of those described. */
const assertDescribed = async ({ operationId, responses }: Described, answer: Response): Promise<void> => {
  const response = responses[answer.status]
  const content = response?.content?.[typeOf(answer)]
  assert.isDefined(content, `${operationId} answers ${answer.status} ${typeOf(answer)}`)
  for (const name of answer.headers.keys()) {
    if (/^(?:x-(?!accel|content)|request-id|retry|traceparent|anthropic|location)/.test(name)) {
      assert.property(response?.headers, name, operationId)
    }
  }
  if (typeOf(answer) !== "application/json") return void await answer.arrayBuffer()
  const { schema } = content
  const validate = validatorOf(schema)
  const isValid = validate(await answer.json())
  assert.isTrue(isValid, `${operationId}: ${JSON.stringify(validate.errors)}`)
}

describe("/openapi.json", () => {
  it("describes each operation at each of its paths", () => {
    assert.match(document.openapi, /^3\.1\./)
    for (const { form, name, paths, responseTypes = [], summary } of operations) {
      assert.strictEqual(document.paths[paths[0]]?.["post"]?.operationId, name)
      for (const path of paths) {
        const post = document.paths[path]?.["post"]
        assert.strictEqual(post?.summary, path === paths[0] ? summary : `${summary}, at ${path}`)
        assert.hasAllKeys(post?.requestBody?.content, ["application/json", ...(form ? ["multipart/form-data"] : [])])
        for (const type of responseTypes) assert.property(post?.responses["200"]?.content, type)
        const inPath = post?.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)
        assert.deepStrictEqual(inPath, path.includes("{model}") ? ["model"] : [])
      }
    }
  })

  it("has a unique id for each description", () => {
    const ids = described().map(({ operation }) => operation.operationId)
    assert.lengthOf(new Set(ids), ids.length)
  })

  it("describes the key of each operation that needs one, and the answer if it is missing", async () => {
    const { components: { securitySchemes } } = document
    for (const { method, operation, path } of described()) {
      const schemes = operation.security.flatMap((requirement) => Object.keys(requirement))
      for (const scheme of schemes) assert.property(securitySchemes, scheme)
      const isNeeded = schemes.includes("bearer")
      const address = `${shared().url}${path.replace("{model}", "local-chat").replaceAll(/\{\w+\}/g, "x")}`
      const answer = await fetch(address, { method, headers: { "content-type": "application/json" } })
      assert.strictEqual(answer.status === 401, isNeeded, `${method} ${path}`)
      await assertDescribed(operation, answer)
    }
  })

  it("has examples that the gateway answers as described", async () => {
    for (const { method, operation, path } of described()) {
      for (const [type, { examples = {} }] of Object.entries(operation.requestBody?.content ?? {})) {
        for (const [name, { value }] of Object.entries(examples)) {
          const answer = await ask(method, path, operation, type, name, value)
          if (answer.status !== 200) assert.fail(`${operation.operationId}, ${name}: ${await answer.text()}`)
          const written = operation.responses["200"]?.content?.[typeOf(answer)]?.examples?.[name]?.value
          if (typeof written === "string") {
            assert.includeMembers(kindsOf(await answer.clone().text()), kindsOf(written), operation.operationId)
          }
          await assertDescribed(operation, answer)
        }
      }
    }
  })

  it("has examples that the gateway also answers later, as tasks", async () => {
    const later = async (one: ReturnType<typeof described>[number], name: string, value: unknown) => {
      const { method, operation, path } = one
      const answer = await ask(method, path, operation, "application/json", name, value, { prefer: "respond-async" })
      assert.strictEqual(answer.status, 202, operation.operationId)
      assert.strictEqual(answer.headers.get("preference-applied"), "respond-async")
      await assertDescribed(operation, answer)
      const get = (suffix: string) =>
        fetch(`${shared().url}${answer.headers.get("location")}${suffix}`, {
          headers: { authorization: `Bearer ${shared().key}` }
        })
      const isRunning = (task: Record<string, unknown>) => ["queued", "in_progress"].includes(String(task["status"]))
      const read = async () => await (await get("")).json() as Record<string, unknown>
      const task = await eventually(read, (task) => !isRunning(task))
      assert.deepInclude(task, { status: "completed", error: null }, operation.operationId)
      await assertDescribed(operation, await get("/content"))
    }
    const requests = described().filter(({ operation }) => operation.responses["202"] !== undefined)
    assert.sameMembers(
      requests.map(({ path }) => path),
      operations.flatMap(({ kind, paths }) => kind === "task" ? [] : paths)
    )
    await Promise.all(
      requests.flatMap((one) =>
        Object.entries(one.operation.requestBody?.content["application/json"]?.examples ?? {})
          .map(([name, { value }]) => later(one, name, value))
      )
    )
  })

  it("describes errors in every dialect", async () => {
    for (const { method, operation, path } of described()) {
      if (operation.requestBody === undefined) continue
      const headers = { authorization: `Bearer ${shared().key}` }
      const address = `${shared().url}${path.replace("{model}", "nobody")}`
      const answers = [
        fetch(address, { method, headers, body: "{" }),
        fetch(address, { method, headers: { ...headers, "content-type": "text/csv" }, body: "{}" }),
        fetch(address, { method, headers: { ...headers, "vendor-version": "2023-06-01" }, body: wrongModel(path) })
      ]
      for (const answer of await Promise.all(answers)) {
        assert.isAtLeast(answer.status, 400)
        await assertDescribed(operation, answer)
      }
    }
  })

  it("has no dangling reference, and allows unknown fields in every object, because they are passed on", () => {
    const references = [...objectsIn(document)].flatMap(({ $ref }) => typeof $ref === "string" ? [$ref] : [])
    assert.isNotEmpty(references)
    for (const reference of references) {
      const [root, components, kind = "", name = ""] = reference.split("/")
      assert.deepStrictEqual([root, components], ["#", "components"])
      assert.property((document.components as unknown as Record<string, object>)[kind], name)
    }
    for (const { additionalProperties } of objectsIn(document)) assert.notStrictEqual(additionalProperties, false)
  })
})

/** Sends an example's request. */
const ask = (
  method: string,
  path: string,
  { parameters }: Described,
  type: string,
  name: string,
  value: unknown,
  headers: Readonly<Record<string, string>> = {}
) => {
  const model = parameters.find((parameter) => parameter.name === "model") as
    | { readonly examples: Record<string, { readonly value: string }> }
    | undefined
  const form = type === "multipart/form-data"
  return fetch(`${shared().url}${path.replace("{model}", model?.examples[name]?.value ?? "")}`, {
    method: method.toUpperCase(),
    headers: {
      authorization: `Bearer ${shared().key}`,
      "vendor-version": "2023-06-01",
      ...(form ? {} : { "content-type": type }),
      ...headers
    },
    body: form ? formOf(value as Record<string, unknown>) : JSON.stringify(value)
  })
}

const formOf = (fields: Readonly<Record<string, unknown>>): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value))
  return form
}

/** The kinds of events in a stream, by their field names. */
const kindsOf = (stream: string): Array<string> =>
  stream.split("\n").flatMap((line) => {
    if (!line.startsWith("data: {")) return line === "" || line.startsWith("data: ") ? [] : [line]
    return Object.keys(JSON.parse(line.slice(6)) as object)
  })

/** A request's example, for an unknown model. */
const wrongModel = (path: string): string => {
  const { examples = {} } = document.paths[path]?.["post"]?.requestBody?.content["application/json"] ?? { schema: {} }
  const [example] = Object.values(examples)
  return JSON.stringify({ ...example?.value as object, model: "nobody" })
}

describe("a client generated from /openapi.json", () => {
  it("compiles, and calls the gateway", async () => {
    const folder = await mkdtemp(join(import.meta.dirname, "client-"))
    try {
      const file = join(folder, "client.ts")
      await writeFile(file, await oazapfts.generateSource(`${shared().url}/openapi.json`))
      await compile(folder, file)
      const client = await import(pathToFileURL(file).href) as {
        readonly defaults: { baseUrl: string; headers: Record<string, string> }
        readonly rerank: (request: object) => Promise<{ readonly status: number; readonly data: { results: unknown } }>
      }
      client.defaults.baseUrl = shared().url
      client.defaults.headers = { authorization: `Bearer ${shared().key}` }
      const { data, status } = await client.rerank({ model: "local-rerank", query: "bees", documents: ["a", "bees"] })
      assert.strictEqual(status, 200)
      assert.isNotEmpty(data.results)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

const compile = async (folder: string, file: string): Promise<void> => {
  const project = join(folder, "tsconfig.json")
  await writeFile(
    project,
    JSON.stringify({
      extends: "../../../../tsconfig.json",
      // the generator treats absent and undefined alike
      compilerOptions: { exactOptionalPropertyTypes: false },
      files: [file],
      include: []
    })
  )
  const { stdout } = await promisify(execFile)("node_modules/.bin/effect-tsgo", ["get-exe-path"])
  await promisify(execFile)(stdout.trim(), ["--noEmit", "-p", project])
}

describe("/docs", () => {
  const page = (headers: Record<string, string> = {}) => fetch(`${shared().url}/docs`, { headers })

  it("is small, compressed and without scripts, and answers 304 to a client that has it", async () => {
    const first = await page({ "accept-encoding": "gzip" })
    assert.strictEqual(first.headers.get("content-encoding"), "gzip")
    assert.match(first.headers.get("content-type") ?? "", /^text\/html/)
    assert.match(
      first.headers.get("content-security-policy") ?? "",
      /^default-src 'none'; style-src 'sha256-[\w+/=]+';/
    )
    const html = await first.text()
    assert.include(html, "Model Gateway")
    assert.isBelow(Buffer.byteLength(html), 1_000_000)
    // nothing else to load: the rest is links
    assert.notMatch(html, /<script|\ssrc=|<link (?!rel="icon" href="data:,">)/)

    const etag = first.headers.get("etag") ?? ""
    const again = await page({ "if-none-match": etag })
    assert.deepStrictEqual([again.status, await again.text()], [304, ""])
    const plain = await page({ "accept-encoding": "identity" })
    assert.isNull(plain.headers.get("content-encoding"))
    assert.strictEqual(await plain.text(), html)
  })
})
