/**
 * Has the operator's guardrail check requests and answers.
 *
 * The check is between the workload's own steps and the providers: by then a request includes everything that it refers to, and an
 * answer is neither sent nor stored before it is allowed. Without a guardrail a request costs one look at the catalogue.
 */
import { Context, Effect, Layer, Predicate } from "effect"
import { Catalogue } from "../catalogue/Catalogue.ts"
import type { Direction, Guardrail as Settings } from "../catalogue/Guardrail.ts"
import { GuardrailRefused, GuardrailUnavailable, InvalidRequest, type JobError } from "../contract/JobError.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Json from "../provider/json/Json.ts"
import * as PaidParts from "../provider/call/PaidParts.ts"
import { formOf, isForm, turnFor, unreadable } from "../provider/call/RequestBody.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { Checked } from "../usage/UsageEvent.ts"
import type { Work } from "../worker/JobLife.ts"
import type { Answer, Perform } from "../worker/Preparation.ts"
import { coverageOf } from "./Coverage.ts"
import { GuardedAnswer } from "./GuardedAnswer.ts"
import { Hook } from "./Hook.ts"
import type { About } from "./HookMessage.ts"

/** The parts of a request that its check needs. */
export type Checkable = Pick<Work, "body" | "contentType" | "id" | "model" | "onChecked" | "operation" | "tenant">

export class Guardrail extends Context.Service<Guardrail, {
  /** Performs the work if the guardrail allows the request, and passes on the parts of the answer that the guardrail allows. */
  readonly around: (work: Work, answer: Answer, perform: Perform) => Effect.Effect<Usage | undefined, JobError>
  /** Checks a request whose answer is never text. Fails unless it may be performed. Returns the body that was checked. */
  readonly checkRequest: (work: Checkable) => Effect.Effect<Uint8Array, JobError>
}>()("shared/guardrail/Guardrail") {
  static readonly layerNoDeps = Layer.effect(
    Guardrail,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const hook = yield* Hook
      const guardrailOf = ({ model }: Checkable) => catalogue.current().guardrails?.get(model)
      /** The URLs of guardrails whose latest check failed, so that each change of state is logged once. */
      const failing = new Set<string>()

      const note = ({ model, onChecked }: Checkable, direction: Direction, outcome: Checked) => {
        onChecked(direction, outcome)
        Metrics.update(Metrics.guardrailChecks(model, direction, outcome), 1)
      }

      const logFailure = ({ onUnreachable, url }: Settings, reason: string) => {
        if (failing.has(url)) return Effect.void
        failing.add(url)
        return Effect.logWarning("the guardrail gives no verdict", { reason, policy: onUnreachable })
      }
      const logSuccess = ({ url }: Settings) =>
        failing.delete(url) ? Effect.logInfo("the guardrail gives verdicts again") : Effect.void

      /** Asks the guardrail. Returns whether it gave a verdict. Fails if it refuses, or gave none and nothing may pass unchecked. */
      const ask = (
        settings: Settings,
        work: Checkable,
        about: About,
        content: Uint8Array
      ): Effect.Effect<boolean, JobError> =>
        Effect.matchEffect(hook.ask(settings, about, content), {
          onSuccess: ({ decision, reason = null }) => {
            if (decision === "allow") return Effect.as(logSuccess(settings), true)
            note(work, about.direction, "refused")
            const refused = new GuardrailRefused({ direction: about.direction, explanation: shortened(reason) })
            return Effect.andThen(logSuccess(settings), Effect.fail(refused))
          },
          onFailure: ({ reason }) => {
            const logged = logFailure(settings, reason)
            if (settings.onUnreachable === "open") return Effect.as(logged, false)
            note(work, about.direction, "unchecked")
            return Effect.andThen(
              logged,
              Effect.fail(new GuardrailUnavailable({ direction: about.direction, retryAfterMs }))
            )
          }
        })

      /** Fails if `what`, which cannot be checked, may not pass unchecked. */
      const passUnreadable = (settings: Settings, work: Checkable, direction: Direction, what: string) => {
        if (settings.onUnreachable === "open") return Effect.void
        note(work, direction, "unchecked")
        const message = `The guardrail of the gateway cannot check ${what}, and nothing may pass unchecked`
        return Effect.fail(new InvalidRequest({ message, param: null, code: "not_checkable" }))
      }

      const aboutOf = ({ id, model, operation, tenant }: Checkable) => ({
        id,
        tenant,
        model,
        operation: operation.name
      })

      const checkRequest = Effect.fnUntraced(function*(settings: Settings, work: Checkable) {
        const { body, hasMedia, json = body } = yield* readRequest(work)
        if (hasMedia) yield* passUnreadable(settings, work, "request", "the files of a form")
        const isChecked = yield* ask(settings, work, { ...aboutOf(work), direction: "request" }, json)
        note(work, "request", isChecked && !hasMedia ? "passed" : "unchecked")
        return body
      })

      /** Has every window of the answer checked. */
      const checkAnswer = Effect.fnUntraced(function*(settings: Settings, work: Work, guarded: GuardedAnswer) {
        let isChecked = true
        // after one check without a verdict, the rest passes unchecked: each further window would wait as long
        let answers = true
        for (;;) {
          const window = yield* guarded.next
          const { isLast, isUnreadable, number, text } = window
          if (isUnreadable) {
            yield* passUnreadable(settings, work, "answer", "what is no text in the answer")
            isChecked = false
          }
          // the first window is checked even if it has no text
          if (answers && (text !== "" || (number === 0 && !isUnreadable))) {
            const about = { ...aboutOf(work), direction: "answer", window: number } as const
            answers = yield* ask(settings, work, about, Buffer.from(JSON.stringify(text)))
          }
          yield* guarded.release(window)
          if (isLast) break
        }
        note(work, "answer", isChecked && answers ? "passed" : "unchecked")
      })

      const performGuarded = Effect.fnUntraced(function*(
        settings: Settings,
        work: Work,
        answer: Answer,
        perform: Perform
      ) {
        const guarded = new GuardedAnswer(answer, work.operation.dialect, settings.window)
        // the answer is paid for although the client does not get it
        const [usage] = yield* PaidParts.metered(work, (paid) => {
          const performed = Effect.tap(perform(work, guarded), (usage) =>
            Effect.sync(() => {
              paid(usage)
              guarded.end()
            }))
          return Effect.all([performed, checkAnswer(settings, work, guarded)], { concurrency: 2 })
        })
        return usage
      })

      const guard = Effect.fnUntraced(function*(settings: Settings, work: Work, answer: Answer, perform: Perform) {
        const { checks } = settings
        const coverage = checks.includes("answer") ? coverageOf(work.operation) : "none"
        // checked before anything is paid for
        if (coverage === "media") {
          yield* passUnreadable(settings, work, "answer", `answers of ${work.operation.name}`)
        }
        const body = checks.includes("request") ? yield* checkRequest(settings, work) : work.body
        const checked: Work = { ...work, body }
        if (coverage === "text") return yield* performGuarded(settings, checked, answer, perform)
        const usage = yield* perform(checked, answer)
        if (coverage === "media") note(work, "answer", "unchecked")
        return usage
      })

      return Guardrail.of({
        around: (work, answer, perform) => {
          const settings = guardrailOf(work)
          return settings === undefined ? perform(work, answer) : guard(settings, work, answer, perform)
        },
        checkRequest: (work) => {
          const settings = guardrailOf(work)
          if (settings === undefined) return Effect.succeed(work.body)
          return Effect.gen(function*() {
            const hasAnswer = settings.checks.includes("answer")
            if (hasAnswer) yield* passUnreadable(settings, work, "answer", `answers of ${work.operation.name}`)
            const body = settings.checks.includes("request") ? yield* checkRequest(settings, work) : work.body
            if (hasAnswer) note(work, "answer", "unchecked")
            return body
          })
        }
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(Hook.layer))
}

/** When clients should retry if the guardrail did not answer, in milliseconds. */
const retryAfterMs = 1_000

/** Maximum number of characters of the guardrail's reason that a client gets. */
const mostReason = 1_000

const shortened = (reason: string | null): string | null => {
  const text = reason?.trim() ?? ""
  return text === "" ? null : text.slice(0, mostReason)
}

interface ReadRequest {
  /** Exactly what was read: if the JSON repeats a member, only the last one. */
  readonly body: Uint8Array
  /** The JSON for the guardrail. Default: the body. */
  readonly json?: Uint8Array
  readonly hasMedia: boolean
}

const readRequest = Effect.fnUntraced(function*(
  work: Checkable
): Effect.fn.Return<ReadRequest, InvalidRequest> {
  yield* turnFor(work)
  if (isForm(work)) {
    const texts = new Map<string, Array<string>>()
    let hasMedia = false
    for (const [name, value] of yield* formOf(work)) {
      if (typeof value === "string") texts.set(name, [...texts.get(name) ?? [], value])
      else hasMedia = true
    }
    return { body: work.body, json: Buffer.from(JSON.stringify(Object.fromEntries(texts))), hasMedia }
  }
  const json = Json.parseExact(Json.decodeText(work.body))
  if (!Predicate.isReadonlyObject(json)) return yield* unreadable()
  yield* turnFor(work)
  return { body: Buffer.from(JSON.stringify(json)), hasMedia: false }
})
