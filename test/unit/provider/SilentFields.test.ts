/**
 * No field of a request is ignored silently. Every field of every operation, sent by every protocol that serves it, changes
 * what the provider gets or the client's answer, is refused by its name, or is named in `x-translation-warnings`, or in the warnings
 * of a task.
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, Result, Schema } from "effect"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { type FieldCase, fieldCases, type Json } from "../../fixture/fields/FieldWalk.ts"
import { type Outcome, outcomesAt, type Target } from "../../fixture/fields/Outcome.ts"
import { type Base, bases, defaults, exemptions, samples, schemaOf, serversOf } from "../../fixture/fields/Samples.ts"

/** Whether a path is another one or within it. */
const isWithin = (inner: string, outer: string): boolean =>
  inner.startsWith(outer) && (outer === "" || /^(?:$|[.[])/.test(inner.slice(outer.length)))

/** The object or list that holds the field. */
const parentOf = (path: string): string => path.replace(/\.?[^.[]+$|\[\d+\]$/, "")

const fieldIn = (warning: string): string => warning.split(" ")[0] ?? ""

/** What is wrong with the outcome; `undefined` if the field has an effect, is refused or is named. */
const faultOf = (path: string, base: Outcome, given: Outcome): string | undefined => {
  // the object around the field is itself refused
  if (base.type === "refused") return undefined
  if (given.type === "refused") {
    const { message, param } = given
    return param !== null && (isWithin(param, parentOf(path)) || isWithin(path, param))
      ? undefined
      : `is refused as: ${message}`
  }
  if (base.type === "failed") return `fails without the field: ${base.message}`
  if (given.type === "failed") return `fails: ${given.message}`
  if (base.seen !== given.seen) return undefined
  const isNamed = [...base.warnings, ...given.warnings].some((warning) =>
    isWithin(path, fieldIn(warning)) ||
    (isWithin(fieldIn(warning), path) && !(base.warnings.includes(warning) && given.warnings.includes(warning)))
  )
  return isNamed ? undefined : "is ignored"
}

const isExempt = (path: string, request: Json, { protocol }: Target): boolean =>
  exemptions.some(({ path: pattern, protocol: only = protocol, when = () => true }) =>
    pattern.test(path) && only === protocol && when(request as { readonly [field: string]: Json })
  )

/** The cases of a base whose requests are valid. */
const casesOf = Effect.fnUntraced(function*(base: Base) {
  const { isForm = false, operation } = base
  const decode = Schema.decodeUnknownResult(isForm ? Schema.Unknown : operation.request)
  return fieldCases(schemaOf(base), base.body, { defaults, samples })
    .map(({ given, ...rest }): FieldCase => ({
      ...rest,
      given: given.filter((body) => Result.isSuccess(decode(body)))
    }))
})

interface Finding {
  /** Without indices. */
  readonly field: string
  readonly isValid: boolean
  /** Equal for the same field and values in another base: one of the two must show what the field does. */
  readonly key: string
  readonly fault: string | undefined
}

/** The findings of all fields in one base. */
const walk = Effect.fnUntraced(function*(base: Base, protocol: Target["protocol"]) {
  const { isForm = false, operation, workload = operation.workloads[0] } = base
  const target: Target = { protocol, workload, operation, isForm }
  const outcomeOf = yield* outcomesAt(target)
  const known = new Map<string, Outcome>()
  const outcome = Effect.fnUntraced(function*(body: Json) {
    const key = JSON.stringify(body)
    const found = known.get(key) ?? (yield* outcomeOf(body))
    known.set(key, found)
    return found
  })
  assert.deepInclude(yield* outcome(base.body), { type: "answered" }, base.title)
  // a difference from call to call would pass for the effect of a field
  assert.deepStrictEqual(yield* outcomeOf(base.body), yield* outcome(base.body), base.title)
  return yield* Effect.forEach(
    yield* casesOf(base),
    Effect.fnUntraced(function*({ base, given, path, values }): Effect.fn.Return<Finding> {
      const field = path.replaceAll(/\d+/g, "")
      const finding = { field, key: `${field} ${values}`, isValid: given.length > 0 }
      if (!finding.isValid) return { ...finding, fault: undefined }
      const before = yield* outcome(base)
      let fault: string | undefined
      for (const each of given) {
        fault = isExempt(path, each, target) ? undefined : faultOf(path, before, yield* outcome(each))
        if (fault === undefined) break
      }
      const request = JSON.stringify(given[0]).slice(0, 600)
      return { ...finding, fault: fault === undefined ? undefined : `${path} ${fault} in ${request}` }
    })
  )
})

/** What no base shows. */
const faultsIn = (findings: ReadonlyArray<Finding>): ReadonlyArray<string> => {
  const valid = findings.filter(({ isValid }) => isValid)
  const fields = new Set(valid.map(({ field }) => field))
  // a base may have what the others cannot add
  const isWalked = (field: string) => fields.has(field) || [...fields].some((inner) => isWithin(inner, field))
  const shown = new Set(valid.flatMap(({ fault, key }) => fault === undefined ? [key] : []))
  return [
    ...new Set(findings.flatMap(({ field }) => isWalked(field) ? [] : [`${field} has no valid sample`])),
    ...valid.flatMap(({ fault, key }) => fault === undefined || shown.has(key) ? [] : [fault])
  ]
}

describe("every field", () => {
  const groups = Array.groupBy(bases, ({ operation, workload }) => `${operation.name} ${workload ?? ""}`.trim())
  for (const [name, group] of Object.entries(groups)) {
    for (const protocol of serversOf(group[0])) {
      it.effect(`of ${name} by ${protocol} has an effect, is refused or is named`, () =>
        Effect.gen(function*() {
          const findings = yield* Effect.forEach(group, (base) => walk(base, protocol))
          assert.deepStrictEqual(faultsIn(findings.flat()), [])
        }))
    }
  }

  it("is walked in every operation", () => {
    assert.sameMembers([...new Set(bases.map(({ operation }) => operation.name))], operations.map(({ name }) => name))
  })
})
