/** The playground has a form for every operation, and an unchanged form sends a valid request. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { operations as forms, type Values } from "../../../services/console/web/playground/Operations.ts"
import { operationNamed, operations } from "../../../shared/contract/operations/operations.ts"
import { picture, sound } from "../../fixture/client/Requests.ts"

describe("the playground", () => {
  it("offers every operation", () => {
    // streaming is a switch of the generateContent form
    const streamed = "streamGenerateContent"
    const wanted = operations.map(({ name }) => name).filter((name) => name !== streamed)
    assert.sameMembers(forms.map(({ name }) => name), wanted)
  })

  it.each(forms)("sends a request of $name", ({ body, fields, name, path, workloads }) => {
    const operation = operationNamed(name) ?? assert.fail(`there is no ${name}`)
    const values: Values = Object.fromEntries(
      fields.map(({ initial, kind, name }) => [name, kind === "picture" ? picture : kind === "sound" ? sound : initial])
    )
    assert.includeMembers([...operation.workloads], [...workloads])
    const paths = operation.paths.map((path) => path.replace("{model}", "a-model"))
    assert.include(paths, path("a-model", values).split("?")[0])
    const sent: unknown = body("a-model", values)
    const decoded = Schema.decodeUnknownExit(operation.request)(sent)
    assert.strictEqual(decoded._tag, "Success", String(decoded))
  })
})
