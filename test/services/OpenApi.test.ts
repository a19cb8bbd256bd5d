/** `/openapi.json`: the description of the API that ingress serves. */
import { assert, describe, it } from "@effect/vitest"
import { operations } from "../../shared/contract/operations.ts"
import { sharedGateway } from "../fixture/SharedGateway.ts"

const shared = sharedGateway()

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly security: ReadonlyArray<Record<string, unknown>>
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody: { readonly content: Record<string, { readonly schema: unknown }> }
  readonly responses: Record<string, { readonly content: Record<string, { readonly schema: unknown }> }>
}

interface Document {
  readonly openapi: string
  readonly paths: Record<string, { readonly post?: Described; readonly get?: Described; readonly delete?: Described }>
  readonly components: {
    readonly schemas: Record<string, unknown>
    readonly securitySchemes: Record<string, Record<string, string>>
  }
}

const documentOf = async () => (await (await fetch(`${shared().url}/openapi.json`)).json()) as Document

/** Every object in a value. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return
  yield value as Record<string, unknown>
  for (const inner of Object.values(value)) yield* objectsIn(inner)
}

describe("/openapi.json", () => {
  it("describes each operation at each of its paths, and nothing else", async () => {
    const document = await documentOf()
    assert.match(document.openapi, /^3\.1\./)
    const tasks = operations.flatMap(({ kind, paths: [path] }) =>
      kind === "task" ? [`${path}/{task_id}`, `${path}/{task_id}/content`] : []
    )
    assert.sameMembers(Object.keys(document.paths), [...operations.flatMap(({ paths }) => paths), ...tasks])
    for (const { name, paths, responseType = "application/json", summary } of operations) {
      assert.strictEqual(document.paths[paths[0]]?.post?.operationId, name)
      for (const path of paths) {
        const post = document.paths[path]?.post
        assert.strictEqual(post?.summary, summary)
        assert.property(post?.requestBody.content, "application/json")
        assert.property(post?.responses["200"]?.content, responseType)
        const inPath = post?.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name)
        assert.deepStrictEqual(inPath, path.includes("{model}") ? ["model"] : [])
      }
    }
  })

  it("has an id for each description that no other has", async () => {
    const ids = Object.values((await documentOf()).paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId)
    )
    assert.lengthOf(new Set(ids), ids.length)
  })

  it("says how a key is sent, for each operation", async () => {
    const { components: { securitySchemes }, paths } = await documentOf()
    assert.deepStrictEqual(securitySchemes["bearer"], { type: "http", scheme: "bearer" })
    for (const [path, methods] of Object.entries(paths)) {
      for (const { security } of Object.values(methods)) {
        const schemes = security.flatMap((requirement) => Object.keys(requirement))
        // an empty list would say that no key is needed
        assert.include(schemes, "bearer", path)
        for (const scheme of schemes) assert.property(securitySchemes, scheme)
      }
    }
  })

  it("describes what can be asked about a task", async () => {
    const { paths } = await documentOf()
    const path = "/v1/video/generations/{task_id}"
    for (const method of [paths[path]?.get, paths[path]?.delete, paths[`${path}/content`]?.get]) {
      assert.deepStrictEqual(method?.parameters.map(({ name }) => name), ["task_id"])
      assert.property(method?.responses["404"]?.content, "application/json")
    }
    const view = paths[path]?.get?.responses["200"]?.content["application/json"]?.schema
    const { properties } = view as { readonly properties: Record<string, unknown> }
    assert.includeMembers(Object.keys(properties), ["task_id", "status", "progress", "url", "metadata", "error"])
    for (const status of ["200", "206"]) {
      assert.property(paths[`${path}/content`]?.get?.responses[status]?.content, "video/mp4")
    }
  })

  it("describes errors as they are", async () => {
    const { components: { schemas }, paths } = await documentOf()
    for (const path of operations.flatMap(({ paths }) => paths)) {
      const post = paths[path]?.post
      for (const status of ["400", "401", "403", "404", "413", "415", "429", "502", "503", "504"]) {
        const content = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } }
        assert.deepStrictEqual(post?.responses[status]?.content, content)
      }
    }
    const { error } =
      (schemas["Error"] as { readonly properties: Record<string, { readonly required: unknown }> }).properties
    assert.deepStrictEqual(error?.required, ["message", "type", "param", "code"])
  })

  it("refers to nothing that it does not hold", async () => {
    const document = await documentOf()
    const references = [...objectsIn(document)].flatMap(({ $ref }) => typeof $ref === "string" ? [$ref] : [])
    assert.isNotEmpty(references)
    for (const reference of references) {
      assert.match(reference, /^#\//)
      const target = reference.slice(2).split("/").reduce<unknown>(
        (inner, key) =>
          (inner as Record<string, unknown> | undefined)?.[key.replaceAll("~1", "/").replaceAll("~0", "~")],
        document
      )
      assert.isDefined(target, reference)
    }
  })

  it("closes no object, for unknown fields are passed on", async () => {
    for (const { additionalProperties } of objectsIn(await documentOf())) {
      assert.notStrictEqual(additionalProperties, false)
    }
  })
})
